// The way of every candidate: columns for the sources, the fusion, each stage and the cut, and a line per candidate.
//
// Everything is drawn once on one canvas; what is highlighted is drawn on a second one above it, so that pointing at a
// line costs one line and not a thousand.

import { announce, fill, h, milliseconds, number, plural, sourceClass } from "./dom.js";
import { steps } from "./formula.js";

const HEAD = 46;
const TITLE_ROWS = 28;
const TITLE_FONT = "600 12px system-ui, sans-serif";
const DETAIL_FONT = "11px system-ui, sans-serif";
const MIN_BLOCK = 26;
const FOOT = 10;
const LABELS = 190;
const NEAR_PIXELS = 14;

/** Return the columns of a trace: for each, its title, its time, and the position of every candidate in it. */
export function layOut(trace) {
  const candidates = trace.candidates;
  const stages = trace.stages.filter((stage) => stage.runs === "after_fusion");
  const before = trace.stages.filter((stage) => stage.runs === "before_fusion");
  const fused = candidates
    .map((candidate, at) => ({ at, candidate }))
    .filter(({ candidate }) => candidate.sources.length)
    .sort((a, b) => b.candidate.fused - a.candidate.fused || (a.candidate.id < b.candidate.id ? -1 : 1));
  const columns = [
    { title: "sources", kind: "sources", time: trace.milliseconds.sources },
    {
      title: "fusion",
      kind: "fusion",
      detail: trace.recipe.fusion.method,
      order: fused.map(({ at }) => at),
      before: before.map((stage) => stage.stage),
    },
    ...stages.map((stage) => ({
      title: stage.stage === "limit" ? `cut at ${trace.limit}` : stage.stage,
      kind: stage.stage === "limit" ? "cut" : "stage",
      stage: stage.stage,
      time: stage.stage === "limit" ? undefined : stage.milliseconds,
      order: stage.order,
      dropped: stage.dropped,
    })),
  ];
  const spent = stages.reduce((sum, stage) => sum + stage.milliseconds, 0) + before.reduce((sum, stage) => sum + stage.milliseconds, 0);
  columns[1].time = Math.max(0, trace.milliseconds.fusion - spent);
  const lists = trace.sources.map((source, at) => ({
    name: source.name,
    error: source.error,
    time: source.milliseconds,
    members: candidates
      .map((candidate, index) => ({ index, rank: candidate.sources.find((one) => one.source === source.name)?.rank }))
      .filter((one) => one.rank)
      .sort((a, b) => a.rank - b.rank),
    at,
  }));
  return { columns, lists, candidates };
}

/** What stands under the title of a column: how many it dropped, or its method, and its time. */
function detailOf(column) {
  const what = column.dropped ? `−${column.dropped}` : column.detail ?? "";
  return [what, column.time === undefined ? "" : milliseconds(column.time)].filter(Boolean).join(" · ");
}

function textWidth(pen, font, text) {
  pen.font = font;
  return pen.measureText(text).width;
}

/** Build the figure. `onchoose` gets the candidate that is opened. */
export function flow(trace, { titles = {}, onchoose, onhover } = {}) {
  const layout = layOut(trace);
  const { columns, lists, candidates } = layout;
  const figure = h("div.flow");
  const base = h("canvas", { "aria-hidden": "true" });
  const over = h("canvas.over", { "aria-hidden": "true" });
  const current = h("div.quiet#flow-current", { role: "option", "aria-selected": "true" }, "No candidate is chosen.");
  const kept = candidates.filter((candidate) => candidate.kept).length;
  const box = h(
    "div.flow-box",
    {
      tabindex: "0",
      role: "listbox",
      "aria-label": `The way of ${plural(candidates.length, "candidate")}; ${kept} kept. Arrow keys go through them, Enter opens one.`,
      "aria-activedescendant": "flow-current",
    },
    base,
    over,
    current,
  );
  const detail = h("div.flow-detail");
  figure.append(box, detail);
  // Kept ones in the order of the result, then dropped ones by the stage that dropped them and their score.
  const cut = columns.at(-1)?.order ?? [];
  const keyOrder = [...cut, ...columns[1].order.filter((at) => !cut.includes(at))];
  let chosen = -1;
  let geometry = null;

  const colours = {};
  const readColours = () => {
    for (const name of ["--ink", "--muted", "--line", "--surface", "--accent", "--bad", "--strand-0", "--strand-1", "--strand-2", "--strand-3", "--strand-4", "--strand-5"]) {
      box.style.color = `var(${name})`;
      colours[name] = getComputedStyle(box).color;
    }
    box.style.removeProperty("color");
  };
  const strand = (candidate) => {
    let best = null;
    for (const source of candidate.sources) if (!best || source.share > best.share) best = source;
    return best ? sourceColour(best.source) : colours["--muted"];
  };
  const sourceColour = (name) => colours[`--strand-${sourceClass(name).slice(-1)}`];

  const measure = () => {
    const width = box.clientWidth;
    const height = box.clientHeight;
    const labels = width > 620 ? LABELS : 26;
    const left = width > 520 ? 92 : 62;
    const step = (width - left - labels) / Math.max(1, columns.length - 1);
    const xs = columns.map((_, at) => left + at * step);
    // Where the columns are narrower than their titles, every second title stands in a row below.
    const pen = base.getContext("2d");
    const widest = Math.max(...columns.map((column) => Math.max(textWidth(pen, TITLE_FONT, column.title), textWidth(pen, DETAIL_FONT, detailOf(column)))));
    const isStaggered = widest > step - 6;
    const head = isStaggered ? HEAD + TITLE_ROWS : HEAD;
    const titleRoom = (isStaggered ? 2 * step : step) - 6;
    const room = height - head - FOOT;
    // The square root gives the first ranks more room than the last ones.
    const most = Math.max(1, ...columns.slice(1).map((column) => column.order.length));
    const y = (rank) => head + 6 + (room - 12) * Math.sqrt((rank + 0.5) / most);
    const gap = 10;
    const weights = lists.map((list) => Math.max(4, Math.sqrt(list.members.length) * 4));
    const total = weights.reduce((sum, one) => sum + one, 0);
    let at = head + 4;
    const all = room - gap * (lists.length - 1);
    // A list without members has a name too.
    const least = Math.min(MIN_BLOCK, all / lists.length);
    const blocks = lists.map((list, index) => {
      const size = least + ((all - least * lists.length) * weights[index]) / total;
      const block = { top: at, size, list };
      at += size + gap;
      return block;
    });
    const sourceY = new Map();
    for (const { top, size, list } of blocks) {
      const count = list.members.length;
      list.members.forEach((member, rank) => {
        if (!sourceY.has(member.index)) sourceY.set(member.index, []);
        sourceY.get(member.index).push({ y: top + size * Math.sqrt((rank + 0.5) / count), name: list.name });
      });
    }
    const places = columns.map((column) => {
      const map = new Map();
      column.order?.forEach((index, rank) => map.set(index, y(rank)));
      return map;
    });
    geometry = { width, height, xs, y, blocks, sourceY, places, labels, head, isStaggered, titleRoom };
  };

  const prepare = (canvas) => {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(geometry.width * ratio);
    canvas.height = Math.round(geometry.height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, geometry.width, geometry.height);
    return pen;
  };

  const line = (pen, x1, y1, x2, y2) => {
    const middle = (x1 + x2) / 2;
    pen.moveTo(x1, y1);
    pen.bezierCurveTo(middle, y1, middle, y2, x2, y2);
  };

  /** Trace the whole way of one candidate onto a pen; return where it ends. */
  const way = (pen, index) => {
    const { xs, places, sourceY } = geometry;
    let end = null;
    const entry = places[1].get(index);
    if (entry !== undefined) {
      for (const from of sourceY.get(index) ?? []) line(pen, xs[0] + 6, from.y, xs[1], entry);
      end = { x: xs[1], y: entry, column: 1 };
    }
    for (let at = 2; at < columns.length; at++) {
      const there = places[at].get(index);
      if (there === undefined) {
        if (end && end.column === at - 1) {
          const x = end.x + (xs[at] - end.x) * 0.42;
          pen.moveTo(end.x, end.y);
          pen.lineTo(x, end.y);
          return { x, y: end.y, column: at - 1, dropped: true };
        }
        continue;
      }
      if (end) line(pen, end.x, end.y, xs[at], there);
      end = { x: xs[at], y: there, column: at };
    }
    return end;
  };

  const short = (pen, text, room) => {
    if (pen.measureText(text).width <= room) return text;
    let low = 0;
    let high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (pen.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
      else high = middle - 1;
    }
    return `${text.slice(0, low)}…`;
  };

  const draw = () => {
    if (!box.clientWidth) return;
    measure();
    const pen = prepare(base);
    const { xs, blocks, height, places, labels, head, isStaggered, titleRoom } = geometry;
    pen.lineCap = "round";
    // Dropped ones first, so that the kept ones lie on top.
    const byColour = new Map();
    candidates.forEach((candidate, index) => {
      const key = `${candidate.kept ? 1 : 0}${strand(candidate)}`;
      if (!byColour.has(key)) byColour.set(key, { candidate, members: [] });
      byColour.get(key).members.push(index);
    });
    const ends = [];
    const faint = Math.max(0.14, Math.min(0.4, 24 / candidates.length));
    for (const [key, { candidate, members }] of [...byColour].sort(([a], [b]) => (a < b ? -1 : 1))) {
      pen.strokeStyle = strand(candidate);
      pen.globalAlpha = key[0] === "1" ? 0.85 : faint;
      pen.lineWidth = key[0] === "1" ? 1.8 : 1;
      pen.beginPath();
      for (const index of members) {
        const end = way(pen, index);
        if (end?.dropped) ends.push(end);
      }
      pen.stroke();
    }
    pen.globalAlpha = Math.max(0.35, faint);
    pen.fillStyle = colours["--bad"];
    for (const { x, y } of ends) pen.fillRect(x - 1, y - 1.5, 2.5, 3);
    pen.globalAlpha = 1;
    for (const { top, size, list } of blocks) {
      pen.fillStyle = sourceColour(list.name);
      pen.globalAlpha = list.error ? 0.3 : 1;
      pen.fillRect(xs[0], top, 6, size);
      pen.globalAlpha = 1;
      pen.fillStyle = colours["--ink"];
      pen.font = "600 11px system-ui, sans-serif";
      pen.textAlign = "right";
      const room = xs[0] - 12;
      const middle = top + size / 2;
      pen.fillText(short(pen, list.name, room), xs[0] - 7, middle - 1);
      pen.fillStyle = list.error ? colours["--bad"] : colours["--muted"];
      pen.font = "10px system-ui, sans-serif";
      pen.fillText(short(pen, list.error ? "failed" : `${list.members.length} · ${milliseconds(list.time)}`, room), xs[0] - 7, middle + 11);
    }
    columns.forEach((column, at) => {
      if (at === 0) return;
      pen.strokeStyle = colours["--line"];
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(xs[at], head - 4);
      pen.lineTo(xs[at], height - FOOT);
      pen.stroke();
      pen.textAlign = at === columns.length - 1 && labels < 60 ? "right" : "center";
      const x = at === columns.length - 1 && labels < 60 ? xs[at] + labels - 2 : xs[at];
      const top = isStaggered && at % 2 ? TITLE_ROWS : 0;
      pen.fillStyle = colours["--ink"];
      pen.font = TITLE_FONT;
      pen.fillText(short(pen, column.title, titleRoom), x, top + 15);
      pen.fillStyle = colours["--muted"];
      pen.font = DETAIL_FONT;
      pen.fillText(short(pen, detailOf(column), titleRoom), x, top + 30);
    });
    pen.fillStyle = colours["--ink"];
    pen.font = TITLE_FONT;
    pen.textAlign = "right";
    pen.fillText("sources", xs[0] + 6, 15);
    pen.fillStyle = colours["--muted"];
    pen.font = DETAIL_FONT;
    pen.fillText(detailOf(columns[0]), xs[0] + 6, 30);
    pen.textAlign = "left";
    // The names of the kept ones, as far as they do not overlap; beside the widest of their ranks.
    pen.font = DETAIL_FONT;
    const nameLeft = 14 + Math.max(10, pen.measureText(String(cut.length)).width);
    let last = -Infinity;
    cut.forEach((index, rank) => {
      const y = places.at(-1).get(index);
      if (y - last < 13) return;
      last = y;
      pen.fillStyle = colours["--muted"];
      pen.fillText(String(rank + 1), xs.at(-1) + 7, y + 4);
      if (labels > 60) {
        pen.fillStyle = colours["--ink"];
        pen.fillText(short(pen, titles[candidates[index].id] ?? candidates[index].id, labels - nameLeft - 6), xs.at(-1) + nameLeft, y + 4);
      }
    });
    drawChosen();
    figure.dataset.drawn = String(candidates.length);
  };

  const drawChosen = () => {
    if (!geometry) return;
    const pen = prepare(over);
    if (chosen < 0) return;
    const candidate = candidates[chosen];
    pen.lineCap = "round";
    for (const [style, size] of [[colours["--surface"], 6], [strand(candidate), 3]]) {
      pen.strokeStyle = style;
      pen.lineWidth = size;
      pen.beginPath();
      const end = way(pen, chosen);
      pen.stroke();
      if (end?.dropped && size === 3) {
        pen.strokeStyle = colours["--bad"];
        pen.lineWidth = 2;
        pen.beginPath();
        pen.moveTo(end.x - 4, end.y - 4);
        pen.lineTo(end.x + 4, end.y + 4);
        pen.moveTo(end.x + 4, end.y - 4);
        pen.lineTo(end.x - 4, end.y + 4);
        pen.stroke();
        const text = `${candidate.stage}: ${number(candidate.number, 3)} < ${number(candidate.needed, 3)}`;
        pen.font = "600 11px system-ui, sans-serif";
        const wide = pen.measureText(text).width;
        const x = Math.min(end.x + 8, geometry.width - wide - 10);
        pen.fillStyle = colours["--surface"];
        pen.fillRect(x - 3, end.y - 9, wide + 6, 18);
        pen.fillStyle = colours["--bad"];
        pen.fillText(text, x, end.y + 4);
      }
    }
    for (const [at, places] of geometry.places.entries()) {
      const y = places.get(chosen);
      if (y === undefined) continue;
      pen.fillStyle = strand(candidate);
      pen.beginPath();
      pen.arc(geometry.xs[at], y, 3.5, 0, 7);
      pen.fill();
    }
  };

  const choose = (index, { speak = false } = {}) => {
    if (index === chosen) return;
    chosen = index;
    drawChosen();
    fill(detail, describe(index));
    onhover?.(index < 0 ? null : candidates[index].id);
    if (index >= 0) {
      const candidate = candidates[index];
      current.textContent = `${titles[candidate.id] ?? candidate.id}. ${steps(trace, candidate).map((step) => `${step.label}: ${step.text}`).join(". ")}`;
      if (speak) announce(current.textContent);
    }
  };

  const describe = (index) => {
    if (index < 0) {
      return h("p.muted", `${plural(candidates.length, "candidate")}, ${kept} kept. Point at a line, or go through them with the arrow keys.`);
    }
    const candidate = candidates[index];
    return [
      h("p.flow-name", h("strong", titles[candidate.id] ?? candidate.id), titles[candidate.id] ? h("code", candidate.id) : null),
      h(
        "dl.steps",
        steps(trace, candidate).map((step) => [
          h(step.dropped ? "dt.bad" : "dt", step.source && h(`span.dot.${sourceClass(step.source)}`), step.label),
          h("dd", step.text),
        ]),
      ),
    ];
  };

  const nearest = (x, y) => {
    if (!geometry) return -1;
    const { xs, places, sourceY } = geometry;
    let best = -1;
    let distance = NEAR_PIXELS;
    const consider = (index, there) => {
      const far = Math.abs(there - y);
      const better = far < distance - (candidates[index].kept ? -2 : 0);
      if (better) {
        best = index;
        distance = far;
      }
    };
    for (let at = 0; at + 1 < xs.length; at++) {
      if (x < xs[at] - 8 || x > xs[at + 1] + (at + 2 === xs.length ? geometry.labels : 0)) continue;
      const share = Math.min(1, Math.max(0, (x - xs[at]) / (xs[at + 1] - xs[at])));
      const eased = easeAt(share);
      for (const [index, to] of places[at + 1]) {
        const froms = at === 0 ? (sourceY.get(index) ?? []).map((from) => from.y) : [places[at].get(index)];
        for (const from of froms) if (from !== undefined) consider(index, from + (to - from) * eased);
      }
      if (at > 0 && share < 0.45) {
        for (const [index, from] of places[at]) if (!places[at + 1].has(index)) consider(index, from);
      }
    }
    return best;
  };

  box.addEventListener("pointermove", (event) => {
    const bounds = box.getBoundingClientRect();
    choose(nearest(event.clientX - bounds.left, event.clientY - bounds.top));
  });
  box.addEventListener("click", () => chosen >= 0 && onchoose?.(candidates[chosen]));
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (event.key === "Enter" && chosen >= 0) onchoose?.(candidates[chosen]);
    if (event.key === "Escape") choose(-1);
    if (event.key === "Home") choose(keyOrder[0], { speak: true });
    if (event.key === "End") choose(keyOrder.at(-1), { speak: true });
    if (step) {
      const at = keyOrder.indexOf(chosen);
      choose(keyOrder[Math.max(0, Math.min(keyOrder.length - 1, at < 0 ? 0 : at + step))], { speak: true });
    }
    if (step || ["Home", "End"].includes(event.key)) event.preventDefault();
  });
  const redraw = () => {
    readColours();
    draw();
  };
  const watcher = new ResizeObserver(redraw);
  watcher.observe(box);
  window.addEventListener("themechange", redraw);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", redraw);
  fill(detail, describe(-1));
  figure.highlight = (id) => choose(id === null ? -1 : candidates.findIndex((candidate) => candidate.id === id));
  figure.redraw = redraw;
  figure.stop = () => {
    watcher.disconnect();
    window.removeEventListener("themechange", redraw);
    scheme.removeEventListener("change", redraw);
  };
  return figure;
}

/** The height of our curve at a share of its width: the Bézier curve with both handles in the middle. */
function easeAt(share) {
  let low = 0;
  let high = 1;
  for (let round = 0; round < 12; round++) {
    const t = (low + high) / 2;
    const x = 1.5 * t * (1 - t) * (1 - t) + 1.5 * t * t * (1 - t) + t * t * t;
    if (x < share) low = t;
    else high = t;
  }
  const t = (low + high) / 2;
  return 3 * t * t * (1 - t) + t * t * t;
}
