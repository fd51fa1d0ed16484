// Facts around names: a figure and a list, as of any day, with what superseded what.

import { get, query } from "./api.js";
import { DAY_MILLISECONDS, debounce, field, fill, h, localDay, plural, storedTime, svg } from "./dom.js";

const MAX_FACTS = 1000;
const MAX_NAMES = 60;
const MAX_NODES = 18;
const SHOWN_DAYS = 30;
export const IS_FACT = "exists subject and exists relation and exists object";

const quote = (text) => JSON.stringify(text).replace(/[\u007f-\u009f]/g, "");
/** The last moment of the day that is so many days after the day of a time. Days are those of the calendar here, so that one may have 23 hours. */
function endOfDay(time, days = 0) {
  const date = new Date(time);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days + 1).getTime() - 1;
}

/** How many days after the day of a time the named day is; null if it names none. */
function daysUntil(time, text) {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text) ?? [];
  if (!year) return null;
  // The difference of two midnights is whole days but for the hour of a change of clocks.
  return Math.round((endOfDay(new Date(year, month - 1, day)) - endOfDay(time)) / DAY_MILLISECONDS);
}

export function readFact(record) {
  return {
    record,
    subject: record.metadata.subject,
    relation: record.metadata.relation,
    object: record.metadata.object,
    from: record.timestamp ? storedTime(record.timestamp) : null,
    until: record.metadata.superseded_at ? storedTime(record.metadata.superseded_at) : null,
  };
}

/** Load facts, all or those that name one of these. Also those that have ended. */
export async function loadFacts(names = null, signal = undefined) {
  if (names && !names.length) return { facts: [], total: 0 };
  const listed = names?.slice(0, MAX_NAMES).map(quote).join(", ");
  const where = names ? `${IS_FACT} and (subject in (${listed}) or object in (${listed}))` : IS_FACT;
  const found = await get(`/v1/records?${query({ filter: where, limit: MAX_FACTS })}`, { signal });
  return { facts: found.records.map(readFact), total: found.total };
}

/** The facts that name one of these, and those about what they name: two steps. */
export async function loadAround(names, signal) {
  const near = await loadFacts(names, signal);
  const known = new Set(names);
  const further = [...new Set(near.facts.flatMap((fact) => [fact.subject, fact.object]))].filter((name) => !known.has(name));
  const far = await loadFacts(further, signal);
  const all = new Map([...near.facts, ...far.facts].map((fact) => [fact.record.id, fact]));
  return { facts: [...all.values()], total: all.size };
}

/** The names in the hits of an answer: the ends of facts, entities, speakers, and words that are written like a name. */
export function namesOf(text, hits) {
  const out = new Map();
  const add = (name, weight) => typeof name === "string" && name.trim() && out.set(name.trim(), (out.get(name.trim()) ?? 0) + weight);
  for (const { metadata = {}, text: said, title } of hits) {
    for (const name of [metadata.subject, metadata.object]) add(name, 4);
    for (const name of [].concat(metadata.entities ?? [], metadata.speaker ?? [])) add(name, 3);
    for (const name of written(`${title ?? ""}. ${said}`)) add(name, 1);
  }
  for (const name of written(text)) add(name, 5);
  return [...out].sort((a, b) => b[1] - a[1]).slice(0, MAX_NAMES).map(([name]) => name);
}

function* written(text) {
  for (const [found] of text.slice(0, 4000).matchAll(/\p{Lu}[\p{L}\p{N}'’-]*(?: \p{Lu}[\p{L}\p{N}'’-]*){0,2}/gu)) {
    yield found;
    const words = found.split(" ");
    if (words.length > 1) yield* words;
  }
}

/** What holds at a time: future facts are left out, ended ones are told apart. */
export function statesAt(facts, at) {
  return facts
    .filter((fact) => fact.from === null || fact.from <= at)
    .map((fact) => ({ fact, state: fact.until !== null && fact.until <= at ? "ended" : "valid" }));
}

function successorIn(facts, fact) {
  return facts.find(
    (other) =>
      other !== fact &&
      ([].concat(other.record.metadata.supersedes ?? []).includes(fact.record.id) ||
        (other.subject === fact.subject && other.relation === fact.relation && other.from !== null && other.from === fact.until)),
  );
}

/** The facts about an entity, and those about what they name: two steps. */
function around(facts, name) {
  if (!name) return facts;
  const near = new Set([name]);
  for (const fact of facts) if (fact.subject === name || fact.object === name) near.add(fact.subject).add(fact.object);
  if (near.size > 1) return facts.filter((fact) => near.has(fact.subject) || near.has(fact.object));
  return facts.filter((fact) => `${fact.subject} ${fact.object}`.toLowerCase().includes(name.toLowerCase()));
}

/**
 * Show facts with a figure, a list and a slider for the day.
 * `actions` gives the buttons of a fact; `onchange` gets the entity and the day when they change.
 */
export function factsView({ facts, total, entity = "", asOf = "", centre = [], actions = () => null, onchange }) {
  const times = facts.flatMap((fact) => [fact.from, fact.until]).filter((time) => time !== null);
  const today = Math.max(Date.now(), ...times);
  // The slider begins on the day before the first fact.
  const first = endOfDay(Math.min(endOfDay(today, -SHOWN_DAYS), ...times), -1);
  const days = daysUntil(first, localDay(today));
  const wanted = daysUntil(first, asOf) ?? days;
  const slider = h("input", { type: "range", min: 0, max: days, value: Math.max(0, Math.min(days, wanted)) });
  const shown = h("span");
  const id = `entities-${Math.random().toString(36).slice(2)}`;
  const picker = h("input", { value: entity, list: id, placeholder: "every entity", autocomplete: "off", spellcheck: "false" });
  const names = [...new Set(facts.flatMap((fact) => [fact.subject, fact.object]))].sort();
  const figure = h("div.graph-box");
  const list = h("ul.facts-list");
  const count = h("p.muted", { role: "status" });

  const choose = (name) => {
    picker.value = picker.value === name ? "" : name;
    draw();
  };
  const draw = () => {
    const at = endOfDay(first, Number(slider.value));
    const isToday = Number(slider.value) === days;
    shown.textContent = localDay(at);
    slider.setAttribute("aria-valuetext", shown.textContent);
    const states = statesAt(around(facts, picker.value.trim()), at);
    const valid = states.filter(({ state }) => state === "valid").length;
    count.textContent = `${plural(valid, "fact")} valid at the end of ${shown.textContent}, ${states.length - valid} superseded.${total > facts.length ? ` The first ${facts.length.toLocaleString("en")} of ${total.toLocaleString("en")} are read.` : ""}`;
    const chosen = picker.value.trim() ? [picker.value.trim()] : centre;
    fill(figure, drawGraph(states, chosen, choose));
    const sorted = states.sort((a, b) => a.fact.subject.localeCompare(b.fact.subject) || a.fact.relation.localeCompare(b.fact.relation) || (a.fact.from ?? 0) - (b.fact.from ?? 0));
    fill(list, sorted.map(({ fact, state }) => factLine(fact, state)));
    onchange?.({ entity: picker.value.trim(), asOf: isToday ? "" : shown.textContent });
  };
  const factLine = (fact, state) => {
    const next = state === "ended" ? successorIn(facts, fact) : null;
    const former = facts.filter((other) => successorIn(facts, other) === fact);
    const name = (text) => h("button.entity", { type: "button", "aria-pressed": String(text === picker.value.trim()), onclick: () => choose(text) }, text);
    return h(
      `li.fact.${state}`,
      { "data-id": fact.record.id },
      h("div.triple", name(fact.subject), h("span.relation", fact.relation), name(fact.object)),
      h(
        "p.muted",
        fact.from ? h("span", "from ", h("time", { datetime: fact.record.timestamp }, localDay(fact.from))) : "always",
        fact.until && h("span", " until ", h("time", { datetime: fact.record.metadata.superseded_at }, localDay(fact.until))),
        next && h("span", `, superseded by “${next.subject} ${next.relation} ${next.object}”`),
        former.length > 0 && h("span", `, supersedes “${former.map((one) => `${one.subject} ${one.relation} ${one.object}`).join("”, “")}”`),
      ),
      actions(fact, state),
    );
  };
  slider.addEventListener("input", draw);
  picker.addEventListener("input", debounce(draw, 80));
  draw();
  return h(
    "div.facts-view",
    h("div.around", field("Around", picker), h("label.field", h("span.label", "As of ", shown), slider)),
    h("datalist", { id }, names.map((name) => h("option", { value: name }))),
    count,
    figure,
    list,
  );
}

/** Names as nodes on two rings, the chosen ones in the middle; the list below says the same in words. */
function drawGraph(states, centre, onchoose) {
  const degree = new Map();
  for (const { fact } of states) for (const name of [fact.subject, fact.object]) degree.set(name, (degree.get(name) ?? 0) + 1);
  const rank = (name) => (centre.includes(name) ? 1000 : 0) + degree.get(name);
  const nodes = [...degree.keys()].sort((a, b) => rank(b) - rank(a) || (a < b ? -1 : 1)).slice(0, MAX_NODES);
  if (nodes.length < 2) return null;
  const middle = nodes.filter((name) => centre.includes(name)).slice(0, 3);
  if (!middle.length) middle.push(nodes[0]);
  const isNarrow = innerWidth < 640;
  const width = isNarrow ? 420 : 640;
  const height = (nodes.length > 9 ? 330 : 250) + (isNarrow ? 40 : 0);
  const places = new Map();
  middle.forEach((name, at) => places.set(name, { x: width / 2 + (at - (middle.length - 1) / 2) * (isNarrow ? 140 : 150), y: height / 2 }));
  const ring = order(nodes.filter((name) => !places.has(name)), states);
  ring.forEach((name, at) => {
    const angle = (2 * Math.PI * (at + 0.5)) / ring.length - Math.PI / 2;
    const far = ring.length > 9 && at % 2 ? 0.72 : 1;
    places.set(name, { x: width / 2 + Math.cos(angle) * (width / 2 - 74) * far, y: height / 2 + Math.sin(angle) * (height / 2 - 26) * far });
  });
  const edges = [];
  const labels = [];
  const pairs = new Map();
  for (const { fact, state } of [...states].sort((a, b) => (a.state < b.state ? -1 : 1))) {
    const from = places.get(fact.subject);
    const to = places.get(fact.object);
    if (!from || !to || from === to) continue;
    const key = [fact.subject, fact.object].sort().join("\u0000");
    const turn = pairs.get(key) ?? 0;
    pairs.set(key, turn + 1);
    const bend = (turn % 2 ? -1 : 1) * Math.ceil(turn / 2) * 26;
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const control = { x: (from.x + to.x) / 2 - ((to.y - from.y) / length) * bend * 2, y: (from.y + to.y) / 2 + ((to.x - from.x) / length) * bend * 2 };
    edges.push(svg("path", { class: `edge ${state}`, d: `M${from.x} ${from.y}Q${control.x} ${control.y} ${to.x} ${to.y}` }));
    const share = turn % 2 ? 0.4 : 0.55;
    const at = (axis) => (1 - share) ** 2 * from[axis] + 2 * share * (1 - share) * control[axis] + share ** 2 * to[axis];
    if (states.length <= 24) labels.push(svg("text", { class: `edge-label ${state}`, x: at("x"), y: at("y") + 3 }, fact.relation.slice(0, 24)));
  }
  const circles = nodes.map((name) => {
    const { x, y } = places.get(name);
    const text = name.length > 20 ? `${name.slice(0, 19)}…` : name;
    const wide = Math.max(34, text.length * 7.2 + 20);
    return svg(
      "g",
      { class: middle.includes(name) ? "node centre" : "node", onclick: () => onchoose(name) },
      svg("title", {}, name),
      svg("rect", { x: x - wide / 2, y: y - 13, width: wide, height: 26, rx: 13 }),
      svg("text", { x, y: y + 4 }, text),
    );
  });
  const label = `${plural(nodes.length, "entity", "entities")} and ${plural(edges.length, "fact")} between them; the list below has them in words`;
  return svg("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...edges, ...labels, ...circles);
}

/** Names that share a fact are beside each other on the ring, so that few lines cross. */
function order(names, states) {
  const left = new Set(names);
  const out = [];
  const linked = (name) => states.map(({ fact }) => (fact.subject === name ? fact.object : fact.object === name ? fact.subject : null)).filter((other) => left.has(other));
  const place = (name, at) => {
    left.delete(name);
    out.splice(at, 0, name);
    linked(name).forEach((other, turn) => {
      if (left.has(other)) place(other, out.indexOf(name) + (turn ? 0 : 1));
    });
  };
  while (left.size) place(left.values().next().value, out.length);
  return out;
}
