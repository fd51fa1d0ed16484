// The state of the service: what it holds, its roles and models, the backlog, and the last hour.

import { get, latest } from "./api.js";
import { download, fill, h, localClock, localDay, milliseconds, plural, sourceClass, svg } from "./dom.js";

export const title = "State";
const REFRESH = 10000;

export async function show(main, parameters, { caller }) {
  const body = h("div");
  const ask = latest();
  const refresh = async () => {
    const state = await ask((signal) => get("/v1/state", { signal }));
    if (!state) return;
    fill(
      body,
      tiles(state),
      h("div.cards", latency(state), degraded(state)),
      h("div.cards.single", sources(state)),
      h("div.cards", roles(state), collections(state), models(state), folders(state), lastError(state)),
    );
  };
  fill(
    main,
    h("div.bar", h("h1", "State"), caller.everything && h("button", { type: "button", onclick: downloadReport }, "Download a report for a bug")),
    caller.everything && h("p.muted", "The report has versions, settings without credentials, addresses and paths, counts and the last hour; no query and no record."),
    body,
  );
  await refresh();
  const timer = setInterval(() => refresh().catch(() => {}), REFRESH);
  return () => {
    clearInterval(timer);
    ask.cancel();
  };
}

async function downloadReport() {
  download("sennit-report.json", JSON.stringify(await get("/v1/report"), null, 2));
}

function card(name, ...content) {
  return h("section.card", { "aria-label": name }, h("h2", name), content);
}


function tiles({ status, hour }) {
  const searches = hour.reduce((sum, minute) => sum + minute.searches, 0);
  const failed = hour.reduce((sum, minute) => sum + Object.values(minute.degraded).reduce((one, count) => one + count, 0), 0);
  const busy = hour.filter((minute) => minute.searches);
  const median = busy.length ? busy.map((minute) => minute.p50).sort((a, b) => a - b)[Math.floor(busy.length / 2)] : null;
  const behind = Object.values(status.behind).reduce((sum, count) => sum + count, 0);
  const tile = (name, value, note, isBad = false) => h(isBad ? "div.tile.alarm" : "div.tile", h("dt", name), h("dd", value), h("dd.note", note));
  return h(
    "dl.tiles",
    { "aria-label": "Now" },
    tile("records", status.records.toLocaleString("en"), `${plural(status.collections.length, "collection")}, ${plural(status.sessions, "session")}`),
    tile("searches in the last hour", searches.toLocaleString("en"), median === null ? "none yet" : `median ${milliseconds(median)}`),
    tile("degraded answers", failed.toLocaleString("en"), failed ? "in the last hour" : "every source answered", failed > 0),
    tile("backlog", (status.pending_vectors + behind).toLocaleString("en"), `${plural(status.pending_vectors, "vector")} to compute, ${plural(behind, "change")} to apply`, Boolean(status.last_error)),
  );
}

/** Bars of the slowest of a minute, with the median inside. */
function latency({ hour }) {
  const most = Math.max(...hour.map((minute) => minute.p95));
  const label = most ? `95 % of the searches of a minute took at most ${milliseconds(most)}` : "No searches in the last hour";
  return card(
    "Latency over the last hour",
    minutes(hour, most, label, milliseconds, (minute) => [
      { share: minute.p95, class: "p95", text: `${clock(minute.minute)}: ${plural(minute.searches, "search", "searches")}, median ${milliseconds(minute.p50)}, 95 % within ${milliseconds(minute.p95)}` },
      { share: minute.p50, class: "p50" },
    ]),
    h("ul.legend", h("li", h("span.dot.source-1"), "median"), h("li", h("span.dot.faint"), "95 %")),
    h("p.muted", `${label}. This process only; /metrics has the sums of all.`),
  );
}

function degraded({ hour }) {
  const counts = {};
  for (const minute of hour) for (const [name, count] of Object.entries(minute.degraded)) counts[name] = (counts[name] ?? 0) + count;
  const names = Object.keys(counts).sort();
  const of = (minute) => Object.values(minute.degraded).reduce((sum, count) => sum + count, 0);
  const most = Math.max(...hour.map(of));
  const label = names.length ? names.map((name) => `${name} ${plural(counts[name], "time")}`).join(", ") : "None in the last hour";
  return card(
    "Degraded sources over the last hour",
    minutes(hour, most, label, (value) => String(Math.round(value)), (minute) => [{ share: of(minute), class: "failed", text: `${clock(minute.minute)}: ${Object.entries(minute.degraded).map(([name, count]) => `${name} ${count}`).join(", ")}` }]),
    names.length ? h("ul.legend", names.map((name) => h("li", h(`span.dot.${sourceClass(name)}`), `${name}: ${plural(counts[name], "time")}`))) : h("p.muted", "None: every source answered every search."),
  );
}

/** How long each source took, minute by minute, and whether it failed. */
function sources({ hour, sources: found }) {
  const spark = (name) => {
    const most = Math.max(...hour.map((minute) => minute.sources[name]?.p95 ?? 0));
    const height = 24;
    return svg(
      "svg",
      { class: "spark", viewBox: `0 0 ${hour.length * 4} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      ...hour.flatMap((minute, at) => {
        const taken = minute.sources[name];
        if (!taken || !most) return [];
        const size = Math.max(1, (taken.p95 / most) * height);
        const failed = minute.degraded[name] ?? 0;
        return [svg("rect", { class: failed ? "failed" : "p50", x: at * 4, y: height - size, width: 3, height: size }, svg("title", {}, `${clock(minute.minute)}: median ${milliseconds(taken.p50)}, 95 % within ${milliseconds(taken.p95)}${failed ? `, failed ${plural(failed, "time")}` : ""}`))];
      }),
    );
  };
  const heads = ["source", "asked", "median", "95 %", "failed", "over the last hour"];
  const cell = (at, content) => h("td", { "data-head": heads[at] }, content);
  return card(
    "Sources over the last hour",
    found.length
      ? h(
          "table.numbers-table",
          h("thead", h("tr", heads.map((name) => h("th", { scope: "col" }, name)))),
          h("tbody", found.map((one) => h("tr", h("th", { scope: "row" }, h(`span.dot.${sourceClass(one.name)}`), one.name), cell(1, one.searches.toLocaleString("en")), cell(2, milliseconds(one.p50)), cell(3, milliseconds(one.p95)), cell(4, one.failed ? h("span.badge.bad", one.failed.toLocaleString("en")) : "0"), cell(5, spark(one.name))))),
        )
      : h("p.muted", "No source was asked in the last hour."),
  );
}

const clock = (seconds) => localClock(seconds * 1000);

function minutes(hour, most, label, format, bars) {
  const width = 600;
  const height = 120;
  const step = width / hour.length;
  const lines = [0, 0.5, 1].map((share) => svg("line", { x1: 0, x2: width, y1: height - share * (height - 8), y2: height - share * (height - 8) }));
  const shapes = hour.flatMap((minute, at) =>
    bars(minute)
      .filter((one) => one.share > 0)
      .map((one) => {
        const size = (one.share / most) * (height - 8);
        return svg("rect", { class: one.class, x: at * step + 1, y: height - size, width: step - 2, height: size, rx: 1.5 }, one.text && svg("title", {}, one.text));
      }),
  );
  return h(
    "figure.chart",
    { role: "img", "aria-label": label },
    h("div.axis", { "aria-hidden": "true" }, h("span", most ? format(most) : ""), h("span", most ? format(most / 2) : ""), h("span", "0")),
    svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...lines, ...shapes),
    h("div.axis.time", { "aria-hidden": "true" }, h("span", clock(hour[0].minute)), h("span", clock(hour[Math.floor(hour.length / 2)].minute)), h("span", "now")),
  );
}

function roles({ status }) {
  const lag = (role) => {
    const count = status.behind[role];
    if (count === undefined) return h("span.muted", "with every write");
    return count ? h("span.badge.bad", `${plural(count, "change")} behind`) : h("span.badge.good", "up to date");
  };
  return card(
    "Roles and servers",
    h(
      "table.numbers-table",
      h("thead", h("tr", ["role", "answered by", "lag"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", Object.entries(status.roles).map(([role, where]) => h("tr", h("th", { scope: "row" }, role), h("td", { "data-head": "answered by" }, where), h("td", { "data-head": "lag" }, lag(role))))),
    ),
  );
}

function collections({ status }) {
  const most = Math.max(1, ...status.collections.map((one) => one.records));
  return card(
    "Collections",
    status.collections.length
      ? h(
          "ul.bars",
          status.collections.map((one) =>
            h("li", h("a", { href: `#/search?in=${encodeURIComponent(one.name)}`, title: one.name }, one.name), h("span.bar-fill", { "aria-hidden": "true" }, h("span", { style: { width: `${(100 * one.records) / most}%` } })), h("span.muted", one.records.toLocaleString("en"))),
          ),
        )
      : h("p.muted", "Nothing is stored yet. ", h("code", "sennit index ."), " adds the files of a folder."),
  );
}

function models({ status }) {
  return card(
    "Models",
    status.models.length
      ? status.models.map((one) => {
          const percent = Math.floor(one.share * 100);
          return h(
            "div.model",
            h("div.model-name", h("strong", one.name), h(one.state === "active" ? "span.badge.good" : "span.badge", one.state)),
            h("span.bar-fill", { role: "img", "aria-label": `${percent} % of the records` }, h("span", { style: { width: `${percent}%` } })),
            h("p.muted", `${plural(one.dimensions, "dimension")}, ${percent} % of the records have a vector`),
          );
        })
      : h("p.muted", "No embedding model yet: the first record or search chooses one."),
  );
}

function folders({ status }) {
  return card(
    "Indexed folders",
    status.folders.length
      ? h("ul.folders", status.folders.map((one) => h("li", h("strong", one.project), " ", h("code", { title: one.path }, one.path), h("span.muted", `${one.revision ? `${one.revision.branch || "detached"}@${one.revision.commit.slice(0, 8)}, ` : ""}${plural(one.files, "file")}, ${plural(one.records, "record")}${one.indexed_at ? `, indexed ${localDay(one.indexed_at)} ${localClock(one.indexed_at)}` : ""}`))))
      : h("p.muted", "None. ", h("code", "sennit index FOLDER"), " adds one."),
  );
}

function lastError({ status }) {
  return status.last_error && card("Last error", h("p.problem", status.last_error));
}
