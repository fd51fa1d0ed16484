// The source of a result: the file at its lines, the address of a page, or the record itself.

import { get, query } from "./api.js";
import { fill, h, showDialog } from "./dom.js";

const CONTEXT_LINES = 400;

/** A button or a link that opens the source of a record. */
export function citation(record) {
  if (isWebAddress(record.url) && !record.path) {
    return h("a.citation", { href: record.url, target: "_blank", rel: "noopener noreferrer" }, record.citation);
  }
  return h("button.citation", { type: "button", onclick: () => openSource(record) }, record.citation);
}

function isWebAddress(url) {
  return typeof url === "string" && /^https?:\/\//i.test(url);
}

export async function openSource(record) {
  const body = h("div", h("p.muted", "Reading …"));
  showDialog(record.citation ?? record.id, body);
  let found = null;
  try {
    if (record.path) found = await get(`/v1/source?${query({ id: record.id })}`);
  } catch (error) {
    found = { problem: error.message };
  }
  const file = found?.file ? found : null;
  const [first, last] = record.lines ?? [0, 0];
  const text = file?.text ?? record.text;
  const start = file ? file.first_line : first || 1;
  const lines = text.replace(/\n$/, "").split("\n");
  const skip = Math.max(0, Math.min(first - start - CONTEXT_LINES, lines.length));
  const list = h(
    "ol.lines",
    { start: start + skip },
    lines.slice(skip, skip + 2 * CONTEXT_LINES + Math.max(0, last - first)).map((line, at) => {
      const number = start + skip + at;
      const inside = number >= first && number <= last;
      return h(inside && file ? "li.inside" : "li", { "data-line": number }, line || " ");
    }),
  );
  list.style.setProperty("counter-reset", `line ${start + skip - 1}`);
  fill(body, found?.problem && h("p.muted", `${found.problem} Shown is the stored text.`), metadata(record), list);
  list.querySelector(".inside")?.scrollIntoView({ block: "center" });
}

function metadata(record) {
  const rows = [
    ["id", record.id],
    ["collection", record.collection],
    ["kind", record.kind],
    ["time", record.timestamp],
    ["sensitivity", record.sensitivity],
    ["scope", record.scope],
    ...Object.entries(record.metadata ?? {}).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  ].filter(([, value]) => value);
  return h("details.metadata", h("summary", "Fields"), h("dl", rows.map(([name, value]) => [h("dt", name), h("dd", value)])));
}
