// The numbers of a candidate in words: how its score came about, as docs/ranking-contract.md defines it.

import { number } from "./dom.js";

/** What one source adds, as a formula with its numbers. */
export function term(recipe, source) {
  const fusion = recipe.fusion;
  const weight = lookUp(fusion.weights, source.source);
  const isAbsent = source.rank === null && source.score === null;
  if (isAbsent) return "not found";
  const times = weight === undefined || weight === 1 ? "" : `${number(weight)} × `;
  if (fusion.method === "rrf") {
    const first = fusion.first_rank ?? 1;
    const rank = source.rank === null ? "?" : source.rank - 1 + first;
    const top = weight === undefined ? "1" : number(weight);
    return `${top} / (${number(fusion.k ?? 60)} + ${rank}) = ${number(source.share)}`;
  }
  const rule = lookUp(fusion.normalise, source.source) ?? fusion.normalise ?? "none";
  if (source.normalised !== undefined && source.normalised !== null) {
    return `${times}${number(source.normalised)} (cosine ${number(source.score)} above background ${number(source.background)}) = ${number(source.share)}`;
  }
  const shown = rule === "none" ? number(source.score) : `${rule}(${number(source.score)})`;
  return `${times}${shown} = ${number(source.share)}`;
}

export function lookUp(table, name) {
  if (table === undefined || table === null || typeof table === "string") return undefined;
  return table[name] ?? table["*"];
}

/** The whole way of a candidate as a list of {label, text}. */
export function steps(trace, candidate) {
  const out = candidate.sources
    .filter((source) => source.rank !== null || source.share)
    .map((source) => ({
      label: source.source,
      source: source.source,
      text: `${source.rank === null ? "rescored" : `rank ${source.rank}`}: ${term(trace.recipe, source)}${source.match_reason ? ` (${source.match_reason})` : ""}`,
    }));
  const shares = candidate.sources.map((source) => source.share).filter((share) => share);
  if (shares.length) out.push({ label: "fusion", text: `${shares.map((share) => number(share)).join(" + ")} = ${number(candidate.fused)}` });
  for (const change of candidate.adjustments) {
    const same = change.before === change.after;
    out.push({
      label: change.stage,
      text: `${same ? "" : `${number(change.before)} → ${number(change.after)} `}${change.reason}`,
    });
  }
  if (candidate.kept) {
    if (candidate.relevance) out.push({ label: "relevance", text: describeRelevance(candidate.relevance) });
  } else {
    const numbers = candidate.number === null || candidate.number === undefined ? "" : ` (${number(candidate.number)}, needed ${number(candidate.needed)})`;
    out.push({ label: `dropped by ${candidate.stage}`, text: `${candidate.reason}${numbers}`, dropped: true });
  }
  return out;
}

function describeRelevance(relevance) {
  const parts = [];
  if (relevance.coverage !== null) parts.push(`${Math.round(relevance.coverage * 100)} % of the query's words`);
  if (relevance.lift !== null) parts.push(`lift ${number(relevance.lift, 3)}`);
  if (relevance.linked) parts.push("mentioned by another result");
  return `${Math.round(relevance.relevance * 100)} %: ${parts.join(", ") || "no evidence"}`;
}
