// The state of the service: what it holds, its parts and models, and the last hour.

import { get } from "./api.js";
import { download, fill, h, milliseconds, plural } from "./dom.js";

export const title = "State";
const REFRESH = 10000;

export async function show(main, parameters, caller) {
  const body = h("div.cards");
  const refresh = async () => {
    const state = await get("/v1/state");
    fill(body, overview(state), latency(state), degraded(state), collections(state), models(state), folders(state));
  };
  fill(
    main,
    h("div.bar", h("h1", "State"), caller.everything && h("button", { type: "button", onclick: downloadReport }, "Download a report for a bug")),
    caller.everything && h("p.muted", "The report has versions, settings without credentials, addresses and paths, counts and the last hour; no query and no record."),
    body,
  );
  await refresh();
  const timer = setInterval(() => refresh().catch(() => {}), REFRESH);
  return () => clearInterval(timer);
}

async function downloadReport() {
  download("sennit-report.json", JSON.stringify(await get("/v1/report"), null, 2));
}

function card(name, ...content) {
  return h("section.card", { "aria-label": name }, h("h2", name), content);
}

function facts(rows) {
  return h("dl.facts", rows.map(([name, value]) => [h("dt", name), h("dd", value)]));
}

function overview({ status, hour }) {
  return card("Now", facts([
    ["records", status.records.toLocaleString("en")],
    ["sessions", status.sessions.toLocaleString("en")],
    ["vectors to compute", status.pending_vectors.toLocaleString("en")],
    ["searches in the last hour", hour.reduce((sum, minute) => sum + minute.searches, 0).toLocaleString("en")],
    ...Object.entries(status.roles).map(([role, where]) => [role, where]),
    ["last error", status.last_error ?? "none"],
  ]));
}

function latency({ hour }) {
  const most = Math.max(1, ...hour.map((minute) => minute.p95));
  const total = hour.reduce((sum, minute) => sum + minute.searches, 0);
  const label = total ? `95 % of the searches of a minute took at most ${milliseconds(most)}` : "No searches in the last hour";
  return card(
    "Latency over the last hour",
    h("div.chart", { role: "img", "aria-label": label }, hour.map((minute) => h("span", { title: `${minute.searches} searches, p50 ${milliseconds(minute.p50)}, p95 ${milliseconds(minute.p95)}`, style: { height: `${(100 * minute.p95) / most}%` } }))),
    h("p.muted", `${label}. This process only; /metrics has the sums of all.`),
  );
}

function degraded({ hour }) {
  const counts = {};
  for (const minute of hour) for (const [name, count] of Object.entries(minute.degraded)) counts[name] = (counts[name] ?? 0) + count;
  const rows = Object.entries(counts);
  return card("Degraded sources", rows.length ? facts(rows.map(([name, count]) => [name, plural(count, "time")])) : h("p.muted", "None in the last hour."));
}

function collections({ status }) {
  const most = Math.max(1, ...status.collections.map((one) => one.records));
  return card(
    "Collections",
    h("ul.bars", status.collections.map((one) => h("li", h("a", { href: `#/search?in=${encodeURIComponent(one.name)}` }, one.name), h("span.bar-fill", { "aria-hidden": "true" }, h("span", { style: { width: `${(100 * one.records) / most}%` } })), h("span.muted", one.records.toLocaleString("en"))))),
  );
}

function models({ status }) {
  return card("Models", status.models.length
    ? facts(status.models.map((one) => [one.name, `${one.state}, ${one.dimensions} dimensions, ${Math.round(one.share * 100)} % of the records`]))
    : h("p.muted", "No embedding model yet."));
}

function folders({ status }) {
  return card("Indexed folders", status.folders.length
    ? facts(status.folders.map((one) => [one.path, `${plural(one.files, "file")}, ${plural(one.records, "record")}${one.indexed_at ? `, indexed ${one.indexed_at.slice(0, 16).replace("T", " ")}` : ""}`]))
    : h("p.muted", "None."));
}
