// Sliders: the order changes at once from the lists at hand, the engine confirms it, and saved judgements are measured.

import { get, latest, post } from "./api.js";
import { replaceAddress } from "./address.js";
import { copyText, debounce, download, field, fill, h, number, plural, sourceClass, toast } from "./dom.js";
import { rerank, toToml } from "./ranking.js";
import { nameOf, readRequest, writeRequest } from "./search.js";
import { searchBody } from "./export.js";

export const title = "Tune";
const PAUSE = 250;

export async function show(main, parameters) {
  const request = readRequest(parameters);
  const { recipes, default: usual } = await get("/v1/recipes");
  const ask = latest();
  const confirm = latest();
  let trial = null;
  let settings = null;
  let names = {};

  const box = h("input", { type: "search", value: request.q, placeholder: "A query to tune with", "aria-label": "Search", autocomplete: "off", spellcheck: "false" });
  const choose = (value) => {
    const select = h("select", recipes.map((one) => h("option", { value: one.name }, one.name)));
    select.value = value;
    return select;
  };
  const recipe = choose(request.recipe || usual);
  const other = h("select", h("option", { value: "" }, "the sliders"), recipes.map((one) => h("option", { value: one.name }, one.name)));
  const sliders = h("div.sliders");
  const before = h("ol.ranking", { "aria-label": "Before" });
  const after = h("ol.ranking", { "aria-label": "After" });
  const note = h("p.status", { role: "status", "aria-live": "polite" });
  const judged = h("div.judged");
  const toml = h("pre.output", { tabindex: "0", "aria-label": "Recipe" });
  const recipeName = h("input", { value: "tuned", spellcheck: "false" });

  fill(
    main,
    h("h1.quiet", "Tune"),
    h("form.request", { onsubmit: (event) => { event.preventDefault(); load(); } },
      h("div.ask", box, h("button.primary", { type: "submit" }, "Search")),
      h("div.options.two", field("Recipe", recipe), field("Compare with", other))),
    h("div.columns.tune",
      h("section.card", { "aria-label": "Settings" }, h("h2", "Settings"), sliders,
        h("h3", "Saved judgements"), judged,
        h("h3", "Save as a recipe"), field("Name", recipeName), toml,
        h("button", { type: "button", onclick: () => copyText(toml.textContent, "the recipe") }, "Copy for sennit.toml")),
      h("section", { "aria-label": "Order" }, note, h("div.side-by-side", h("div", h("h2", "Before"), before), h("div", h("h2", "After"), after)))),
  );

  const load = async () => {
    request.recipe = recipe.value === usual ? "" : recipe.value;
    replaceAddress("tune", writeRequest(request));
    const chosen = recipes.find((one) => one.name === recipe.value);
    settings = { fusion: structuredClone(chosen.fusion), stages: structuredClone(chosen.stages) };
    showSliders(chosen);
    showToml();
    if (!request.q.trim()) {
      fill(note, "Search first, or measure saved judgements.");
      return;
    }
    try {
      const found = await ask((signal) => post("/v1/trial", trialBody({}), { signal }));
      if (!found) return;
      trial = found;
      names = Object.fromEntries(found.hits.map((hit) => [hit.id, nameOf(hit)]));
      fill(before, found.hits.map((hit) => line(hit.id, hit.score, null)));
      if (other.value) compare();
      else follow();
    } catch (error) {
      fill(note, h("span.problem", error.message));
    }
  };

  const trialBody = (changes) => ({ ...searchBody({ ...request, recipe: recipe.value }), ...changes });

  const compare = async () => {
    const found = await confirm((signal) => post("/v1/trial", { ...searchBody({ ...request, recipe: other.value }) }, { signal }));
    if (!found) return;
    for (const hit of found.hits) names[hit.id] ??= nameOf(hit);
    showAfter(found.hits.map((hit) => ({ id: hit.id, score: hit.score })));
    fill(note, `${recipe.value} beside ${other.value}.`);
  };

  const follow = () => {
    if (!trial || other.value) return;
    let out;
    try {
      out = rerank(trial.trace, { ...settings, similarity: trial.similarity });
    } catch (error) {
      fill(note, error.message);
      return settle();
    }
    const candidates = trial.trace.candidates;
    showAfter(out.order.map(({ index, score }) => ({ id: candidates[index].id, score })));
    fill(note, out.estimated.length ? `At once from the lists at hand; ${out.estimated.join(", ")} is being checked by the engine …` : "At once from the lists at hand.");
    settle();
  };

  const settle = debounce(async () => {
    showToml();
    try {
      const found = await confirm((signal) => post("/v1/trial", trialBody(settings), { signal }));
      if (!found || other.value) return;
      for (const hit of found.hits) names[hit.id] ??= nameOf(hit);
      const same = found.hits.every((hit, at) => after.children[at]?.dataset.id === hit.id);
      showAfter(found.hits.map((hit) => ({ id: hit.id, score: hit.score })));
      fill(note, h("span.badge.good", same ? "confirmed by the engine" : "corrected by the engine"), moved());
    } catch (error) {
      fill(note, h("span.problem", error.message));
    }
  }, PAUSE);

  const moved = () => {
    const old = [...before.children].map((item) => item.dataset.id);
    const fresh = [...after.children].map((item) => item.dataset.id);
    const count = fresh.filter((id, at) => old[at] !== id).length;
    return count ? ` ${plural(count, "place")} changed.` : " The order is the same.";
  };

  const showAfter = (entries) => {
    const old = new Map([...before.children].map((item, at) => [item.dataset.id, at]));
    fill(after, entries.map(({ id, score }, at) => line(id, score, old.has(id) ? old.get(id) - at : "new")));
  };

  const line = (id, score, move) => {
    const item = h("li", { "data-id": id }, h("span.name", names[id] ?? id), h("span.muted", number(score, 3)));
    if (move === "new") item.append(h("span.move.up", "new"));
    else if (move) item.append(h(move > 0 ? "span.move.up" : "span.move.down", `${move > 0 ? "↑" : "↓"}${Math.abs(move)}`));
    return item;
  };

  const showSliders = (chosen) => {
    const out = [];
    const { fusion, stages } = settings;
    if (fusion.weights || fusion.method === "rrf") {
      fusion.weights = Object.fromEntries(chosen.sources.map((source) => [source.name, fusion.weights?.[source.name] ?? fusion.weights?.["*"] ?? 1]));
      for (const name of Object.keys(fusion.weights)) {
        out.push(slider(`weight of ${name}`, fusion.weights[name], 0, Math.max(2, fusion.weights[name] * 2), 0.01, (value) => { fusion.weights[name] = value; }, sourceClass(name)));
      }
    }
    if (fusion.method === "rrf") out.push(slider("k", fusion.k ?? 60, 0, 200, 1, (value) => { fusion.k = value; }));
    for (const stage of stages) {
      if (stage.stage === "mmr") out.push(slider("λ (relevance against repetition)", stage.relevance_weight, 0, 1, 0.01, (value) => { stage.relevance_weight = value; }));
      if (stage.stage === "decay") out.push(slider("recency", typeof stage.recency === "number" ? stage.recency : 0.1, 0, 1, 0.01, (value) => { stage.recency = value; }));
    }
    fill(sliders, out.length ? out : h("p.muted", `The fusion ${fusion.method} has no weights.`));
  };

  const slider = (label, value, low, high, step, change, colour) => {
    const shown = h("output", number(value));
    const input = h("input", { type: "range", min: low, max: high, step, value });
    input.addEventListener("input", () => {
      change(Number(input.value));
      shown.textContent = number(Number(input.value));
      follow();
    });
    return h("label.slider", h("span", colour && h(`span.dot.${colour}`), label), input, shown);
  };

  const showToml = () => {
    toml.textContent = toToml(recipeName.value || "tuned", recipe.value, settings.fusion, settings.stages);
  };

  const measure = async () => {
    fill(judged, h("p.muted", "Measuring …"));
    try {
      const found = await post("/v1/trial/judged", { recipe: recipe.value, ...settings });
      fill(judged, showMeasure(found), button());
    } catch (error) {
      fill(judged, h("p.problem", error.message), button());
    }
  };
  const button = () => h("div.buttons", h("button", { type: "button", onclick: measure }, "Measure nDCG@10"), h("button", { type: "button", onclick: downloadQrels }, "Download qrels"));
  fill(judged, h("p.muted", "Grade results with the keys 0 to 3 in the view Search; then measure the settings on every graded query."), button());

  box.addEventListener("input", debounce(() => { request.q = box.value; load(); }, 150));
  recipe.addEventListener("change", load);
  other.addEventListener("change", load);
  recipeName.addEventListener("input", showToml);
  await load();
}

/** Save the judgements as `sennit eval` reads them: queries.jsonl and qrels.tsv. */
async function downloadQrels() {
  const { queries, events } = await get("/v1/feedback");
  const texts = new Map(queries.map((one) => [one.query_id, one.user_query]));
  const ids = new Map();
  const grades = new Map();
  for (const event of events) {
    const { grade, object } = event.event_attributes ?? {};
    if (grade === undefined) continue;
    const text = texts.get(event.query_id);
    if (!ids.has(text)) ids.set(text, event.query_id);
    grades.set(`${ids.get(text)}\t${object.object_id}`, grade);
  }
  if (!grades.size) return toast("No judgements yet.");
  download("queries.jsonl", [...ids].map(([text, id]) => `${JSON.stringify({ _id: id, text })}\n`).join(""));
  download("qrels.tsv", `query-id\tcorpus-id\tscore\n${[...grades].map(([key, grade]) => `${key}\t${grade}\n`).join("")}`);
}

function showMeasure(found) {
  if (!found.queries.length) return h("p.muted", "No judgements yet.");
  const flips = found.queries.filter((one) => one.after !== one.before);
  return [
    h("p.ndcg", "nDCG@10 ", h("strong", number(found.before, 3)), " → ", h(found.after >= found.before ? "strong.up" : "strong.down", number(found.after, 3)), h("span.muted", ` over ${plural(found.queries.length, "query", "queries")}`)),
    flips.length
      ? h("ul.flips", flips.map((one) => h("li", h("span.name", one.query), h(one.after > one.before ? "span.move.up" : "span.move.down", `${number(one.before, 3)} → ${number(one.after, 3)}`))))
      : h("p.muted", "No query changes."),
  ];
}
