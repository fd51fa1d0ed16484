// Passages: the part of a text that has most of the query's words, with the words marked.

import { h } from "./dom.js";

const WORD = /[\p{L}\p{N}_]+/gu;
const STOP = new Set("a an and are as at be but by did do does for from had has have how i in is it its me my of on or our so that the this to was we were what when where which who why will with you your".split(" "));

/** The words of a query that are worth marking, without their endings. */
export function stems(query) {
  const words = [...query.toLowerCase().matchAll(WORD)].map(([word]) => word);
  const useful = words.filter((word) => !STOP.has(word));
  return [...new Set((useful.length ? useful : words).map(stem))];
}

function stem(word) {
  const cut = word.length > 4 ? word.replace(/(ings?|ed|es|s|ly)$/, "") : word;
  return cut.length >= 3 ? cut : word;
}

function isMatch(word, wanted) {
  const own = stem(word.toLowerCase());
  return wanted.some((one) => own === one);
}

/** Return at most `room` characters around the most matches, as nodes. */
export function passage(text, wanted, room = 320) {
  const flat = text.replace(/```[\w-]*/g, " ").replace(/\s+/g, " ").trim();
  const matches = [...flat.matchAll(WORD)].filter(([word]) => isMatch(word, wanted)).map((found) => found.index);
  let start = 0;
  if (flat.length > room && matches.length) {
    let best = 0;
    for (const from of matches) {
      const count = matches.filter((at) => at >= from && at < from + room - 40).length;
      if (count > best) [best, start] = [count, from];
    }
    start = Math.max(0, Math.min(start - 40, flat.length - room));
    if (start > 0) start = flat.indexOf(" ", start) + 1 || start;
  }
  const shown = flat.slice(start, start + room);
  return [start > 0 ? "… " : "", mark(shown, wanted), start + room < flat.length ? " …" : ""];
}

/** Return a text as nodes with the wanted words marked. */
export function mark(text, wanted) {
  const out = [];
  let last = 0;
  for (const found of text.matchAll(WORD)) {
    if (!isMatch(found[0], wanted)) continue;
    out.push(text.slice(last, found.index), h("mark", found[0]));
    last = found.index + found[0].length;
  }
  out.push(text.slice(last));
  return out;
}
