// Excerpts: sentences as paragraphs, lines of code as they are, rows of tables; the words of the query are marked.

import { h } from "./dom.js";

/** Return the excerpt of a result, as the service sends it. */
export function excerpt(lines) {
  const blocks = [];
  for (const line of lines) {
    const draw = kindOf(line);
    if (draw !== paragraph && blocks.at(-1)?.draw === draw) blocks.at(-1).lines.push(line);
    else blocks.push({ draw, lines: [line] });
  }
  return h("div.excerpt", blocks.map(({ draw, lines }) => draw(lines)));
}

/** The text of an excerpt of one line; null where there are more. */
export function plainText(lines) {
  return lines.length === 1 ? textOf(lines[0]) : null;
}

const textOf = (line) => line.parts.map(({ text }) => text).join("");

function kindOf(line) {
  if (!line.verbatim) return paragraph;
  const isRow = line.number === null && /^\|.*\|$/.test(textOf(line));
  return isRow ? table : code;
}

function paragraph([line]) {
  return h("p", marked(line.parts));
}

/** Return the rows of a table in Markdown. They are not aligned: each wraps, on a phone too, between its cells. */
function table(lines) {
  return h("ul.table-rows", lines.map((line) => h("li", cells(line).map((parts) => h("span", marked(parts))))));
}

/** Cut the parts of a row at its bars, but not at those that a backslash makes part of a cell. */
function cells(line) {
  const out = [[]];
  for (const { text, match } of line.parts) {
    text.split(/(?<!\\)\|/).forEach((piece, at) => {
      if (at) out.push([]);
      out.at(-1).push({ text: piece.replaceAll("\\|", "|"), match });
    });
  }
  return out.slice(1, -1);
}

function code(lines) {
  const start = lines[0].number;
  const rows = lines.map((line) => h("li", marked(line.parts)));
  const list = h(start === null ? "ol.lines.unnumbered" : "ol.lines", { start: start ?? 1 }, rows);
  if (start !== null) list.style.setProperty("counter-reset", `line ${start - 1}`);
  return list;
}

/** The parts of a line, with the words of the query marked. */
export function marked(parts) {
  return parts.map(({ text, match }) => (match ? h("mark", text) : text));
}
