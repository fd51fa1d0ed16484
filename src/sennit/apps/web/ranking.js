// The formulas of docs/ranking-contract.md, so that the order follows a slider at once. A test compares every number with
// the engine. What a stage did to a candidate that cannot be computed here is taken over from the trace.

const SPREAD_RULES = { minmax: () => 1, sum: (n) => 1 / n, zscore: () => 0, dbsf: () => 0.5, dbsf_sample: () => 0.5 };
const BEND = 0.05;

/** By code points, like the engine: the order of JavaScript's own comparison differs beyond the basic plane. */
export function compareIds(a, b) {
  const left = [...a];
  const right = [...b];
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const difference = left[at].codePointAt(0) - right[at].codePointAt(0);
    if (difference) return difference;
  }
  return left.length - right.length;
}

/** Return the lists that were fused, as {name, entries: [{index, score}]}, best first. */
export function readLists(trace) {
  return trace.sources
    .filter((source) => source.error === null)
    .map((source) => {
      const entries = [];
      trace.candidates.forEach((candidate, index) => {
        const one = candidate.sources.find((other) => other.source === source.name);
        if (one && (one.score !== null || one.rank !== null)) entries.push({ index, score: one.score ?? 0, rank: one.rank ?? Infinity });
      });
      entries.sort((a, b) => b.score - a.score || a.rank - b.rank || a.index - b.index);
      const background = trace.candidates.flatMap((candidate) => candidate.sources).find((one) => one.source === source.name && one.background !== undefined);
      return { name: source.name, entries, resolution: readResolution(background), background: background?.background ?? 0 };
    });
}

/** The resolution of the model, from one value that the engine normalised. */
function readResolution(one) {
  if (!one) return 0.85;
  const lift = (one.score - one.background) / (1 - one.background);
  const value = (lift + Math.sqrt(lift * lift + BEND * BEND)) / 2;
  return value ? one.normalised / value : 0.85;
}

const lookUp = (table, name, otherwise) => (table && typeof table === "object" ? table[name] ?? table["*"] : table) ?? otherwise;

export function normalise(rule, list, allEqual) {
  const scores = list.entries.map((entry) => entry.score);
  const n = scores.length;
  if (!n) return [];
  const low = Math.min(...scores);
  const high = Math.max(...scores);
  if (rule in SPREAD_RULES && low === high) return scores.map(() => allEqual ?? SPREAD_RULES[rule](n));
  const largest = Math.max(...scores.map(Math.abs));
  const byLargest = scores.map((score) => (largest > 0 ? score / largest : 0));
  const mean = scores.reduce((sum, one) => sum + one, 0) / n;
  const deviation = (degrees) => Math.sqrt(scores.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (n - degrees));
  switch (rule) {
    case "none": return scores;
    case "max": return byLargest;
    case "minmax": return scores.map((score) => (score - low) / (high - low));
    case "sum": {
      const total = scores.reduce((sum, one) => sum + one - low, 0);
      return scores.map((score) => (score - low) / total);
    }
    case "l2": {
      const length = Math.sqrt(byLargest.reduce((sum, one) => sum + one * one, 0));
      return byLargest.map((one) => (length > 0 ? one / length : one));
    }
    case "zscore": return scores.map((score) => (score - mean) / deviation(0));
    case "dbsf": return scores.map((score) => (score - mean) / deviation(0) / 6 + 0.5);
    case "dbsf_sample": return scores.map((score) => (score - mean) / deviation(1) / 6 + 0.5);
    case "rank": return scores.map((_, position) => 1 - position / n);
    case "arctan": return scores.map((score) => (Math.atan(score) * 2) / Math.PI);
    case "background":
      return scores.map((score) => {
        const lift = (score - list.background) / (1 - list.background);
        return (list.resolution * (lift + Math.sqrt(lift * lift + BEND * BEND))) / 2;
      });
    default: throw new Error(`unknown normalisation ${rule}`);
  }
}

const sum = (terms) => (terms.length > 2 ? [...terms].sort((a, b) => a - b) : terms).reduce((total, one) => total + one, 0);

/** Return the fused score of every candidate: a map from its index. */
export function fuse(fusion, lists) {
  const terms = new Map();
  const add = (index, list, value) => {
    if (!terms.has(index)) terms.set(index, lists.map(() => null));
    terms.get(index)[list] = value;
  };
  const { method } = fusion;
  const isByScore = ["weighted", "linear", "relative_score"].includes(method) || method.startsWith("comb") || method === "dbsf";
  lists.forEach((list, at) => {
    const weight = fusion.weights ? lookUp(fusion.weights, list.name, 1) : 1;
    if (isByScore) {
      const values = normalise(lookUp(fusion.normalise, list.name, "max"), list, fusion.all_equal);
      list.entries.forEach((entry, position) => add(entry.index, at, values[position] * (method.startsWith("comb") ? 1 : weight)));
      return;
    }
    list.entries.forEach((entry, position) => {
      if (method === "rrf") {
        const k = fusion.k ?? 60;
        const first = fusion.first_rank ?? 1;
        if (fusion.weighting === "rank") add(entry.index, at, weight ? 1 / ((position + 1) / weight + k + first - 1) : 0);
        else add(entry.index, at, weight / (position + k + first));
      } else if (method === "isr" || method === "log_isr") add(entry.index, at, 1 / (position + 1) ** 2);
      else if (method === "rbc") add(entry.index, at, (1 - (fusion.phi ?? 0.9)) * (fusion.phi ?? 0.9) ** position);
      else if (method === "borda") add(entry.index, at, position);
      else throw new Error(`${method} is computed by the server only`);
    });
  });
  const out = new Map();
  for (const [index, found] of terms) out.set(index, combine(method, found, fusion, terms.size, lists));
  return out;
}

function combine(method, found, fusion, n, lists) {
  if (method === "borda") return sum(found.map((position, at) => (position === null ? (n - lists[at].entries.length + 1) / 2 : n - position)));
  const present = found.filter((term) => term !== null);
  const m = present.length;
  if (method === "combmax") return Math.max(...present);
  if (method === "combmin") return Math.min(...present);
  if (method === "combmed") {
    const ordered = [...present].sort((a, b) => a - b);
    return m % 2 ? ordered[(m - 1) / 2] : (ordered[m / 2 - 1] + ordered[m / 2]) / 2;
  }
  const factor = { combmnz: m, combanz: 1 / m, combgmnz: m ** (fusion.gamma ?? 1), isr: m, log_isr: Math.log(m) }[method] ?? 1;
  return sum(found.map((term) => (term ?? 0) * factor));
}

function ordered(entries, candidates) {
  return entries.sort((a, b) => b.score - a.score || compareIds(candidates[a.index].id, candidates[b.index].id));
}

/** The thresholds of a source of a recipe; null is off. */
export function thresholdOf(source) {
  return { min_score: source.min_score ?? null, max_distance: source.max_distance ?? null };
}

const LIFTS = [0, 0.05, 0.12, 0.4, 1];
const SIMILARITIES = [0, 0.7, 0.75, 0.85, 1];

/** The distance of a cosine, by the metric of the source. */
export function distance(metric, cosine, background) {
  if (metric === "l2_squared") return 2 - 2 * cosine;
  if (metric === "l2") return Math.sqrt(Math.max(0, 2 - 2 * cosine));
  if (metric !== "calibrated") return 1 - cosine;
  const lift = (cosine - background) / (1 - background);
  if (lift <= 0 || lift >= 1) return lift <= 0 ? 2 : 0;
  const at = LIFTS.findIndex((one) => one > lift);
  const share = (lift - LIFTS[at - 1]) / (LIFTS[at] - LIFTS[at - 1]);
  return 2 - 2 * (SIMILARITIES[at - 1] + share * (SIMILARITIES[at] - SIMILARITIES[at - 1]));
}

/** Leave out of each list what a threshold excludes. What a looser one would add is not at hand. */
function cutLists(trace, lists, thresholds, estimated) {
  const configs = new Map(trace.recipe.sources.map((source) => [source.name, source]));
  return lists.map((list) => {
    const config = configs.get(list.name) ?? configs.get(list.name.split(":")[0]);
    const wanted = config && thresholds[config.name];
    if (!wanted) return list;
    const { min_score: low, max_distance: far } = wanted;
    const old = thresholdOf(config);
    if (low === old.min_score && far === old.max_distance) return list;
    const isLooser = (old.min_score !== null && (low === null || low < old.min_score)) || (old.max_distance !== null && (far === null || far > old.max_distance));
    const isCalibrated = config.metric === "calibrated" && far !== null && !list.background;
    // A stage may score again what a list has lost.
    if (isLooser || isCalibrated || trace.recipe.stages.some((stage) => stage.stage === "rescore")) estimated.add(`${list.name} list`);
    const passes = ({ score }) => (low === null || score >= low) && (far === null || distance(config.metric, score, list.background) < far);
    return { ...list, entries: list.entries.filter(passes) };
  });
}

/** Rank the candidates of a trace with changed settings. Returns the order after the cut, and what is only estimated. */
export function rerank(trace, { fusion, stages, thresholds = {}, min_relevance: least = 0, limit = trace.limit, similarity = null }) {
  const candidates = trace.candidates;
  const estimated = new Set();
  const lists = cutLists(trace, readLists(trace), thresholds, estimated);
  let ranking = ordered([...fuse(fusion, lists)].map(([index, score]) => ({ index, score })), candidates);
  for (const stage of trace.stages.filter((one) => one.runs === "after_fusion" && !["limit", "min_relevance"].includes(one.stage))) {
    const settings = stages.find((one) => one.stage === stage.stage) ?? {};
    if (stage.stage === "decay") ranking = decay(trace, ranking, settings);
    else if (stage.stage === "mmr") ranking = mmr(ranking, settings, candidates, similarity, estimated);
    else {
      const changed = stage.changed > 0 || stage.dropped > 0;
      if (changed) estimated.add(stage.stage);
      ranking = ordered(
        ranking
          .filter(({ index }) => candidates[index].stage !== stage.stage)
          .map(({ index, score }) => {
            const change = candidates[index].adjustments.find((one) => one.stage === stage.stage);
            return { index, score: change && change.before ? (score * change.after) / change.before : score };
          }),
        candidates,
      );
    }
  }
  if (least > 0) {
    // Only that of the results is at hand.
    estimated.add("relevance");
    ranking = ranking.filter(({ index }) => (candidates[index].relevance?.relevance ?? 1) >= least);
  }
  return { order: ranking.slice(0, limit), all: ranking, estimated: [...estimated] };
}

function decay(trace, ranking, settings) {
  const used = trace.time?.recency ?? 0;
  const wanted = settings.recency === undefined || settings.recency === "auto" ? used : settings.recency;
  return ordered(
    ranking.map(({ index, score }) => {
      const change = trace.candidates[index].adjustments.find((one) => one.stage === "decay");
      const factor = /factor ([\d.]+)/.exec(change?.reason ?? "");
      const exact = change && change.before && used ? 1 - (1 - change.after / change.before) / used : factor ? Number(factor[1]) : 1;
      return { index, score: score * (1 - wanted * (1 - exact)) };
    }),
    trace.candidates,
  );
}

function mmr(ranking, settings, candidates, similarity, estimated) {
  const weight = settings.relevance_weight ?? 0.7;
  const depth = settings.depth ?? 20;
  const head = ranking.slice(0, depth);
  const places = new Map((similarity?.ids ?? []).map((id, at) => [id, at]));
  if (!head.every(({ index }) => places.has(candidates[index].id))) estimated.add("mmr");
  const alike = (a, b) => similarity?.values[places.get(candidates[a.index].id)]?.[places.get(candidates[b.index].id)] ?? 0;
  const best = Math.max(0, ...head.map(({ score }) => score));
  const left = [...head];
  const chosen = [];
  while (left.length) {
    let at = 0;
    let margin = -Infinity;
    left.forEach((one, position) => {
      const nearest = Math.max(0, ...chosen.map((other) => alike(one, other)));
      const value = weight * (best > 0 ? one.score / best : 0) - (1 - weight) * nearest;
      if (value > margin) [at, margin] = [position, value];
    });
    chosen.push(...left.splice(at, 1));
  }
  return [...chosen, ...ranking.slice(depth)];
}
