// Sliders: the order changes at once from the lists at hand, the engine confirms it, and saved judgements are measured.

import { get, latest, once, post, serial } from "./api.js";
import { copyText, debounce, download, field, fill, h, number, plural, showDialog, sourceClass, toast } from "./dom.js";
import { rerank, thresholdOf } from "./ranking.js";
import { nameOf, readRequest, writeRequest } from "./search.js";
import { searchBody } from "./export.js";
import { loadProjects, projectField } from "./project.js";

export const title = "Tune";
const PAUSE = 250;
const COSINES = ["vector", "outline_vector"];

export async function show(main, parameters, { caller, remember: keepAddress }) {
  const request = readRequest(parameters);
  const projects = await loadProjects();
  let { recipes, default: usual } = await get("/v1/recipes");
  const ask = latest();
  const confirm = latest();
  const preview = latest();
  let trial = null;
  let settings = null;
  let names = {};
  const scoreSliders = [];

  const box = h("input", { type: "search", value: request.q, placeholder: "A query to tune with", "aria-label": "Search", autocomplete: "off", spellcheck: "false" });
  const options = () => recipes.map((one) => h("option", { value: one.name }, one.name));
  const recipe = h("select", options());
  recipe.value = request.recipe || usual;
  if (!recipe.value) recipe.value = usual;
  const other = h("select", h("option", { value: "" }, "the sliders"), options());
  other.value = parameters.get("with") ?? "";
  const sliders = h("div.sliders");
  const before = h("ol.ranking", { "aria-label": "Before" });
  const after = h("ol.ranking", { "aria-label": "After" });
  const beforeName = h("h2");
  const afterName = h("h2");
  const sides = h("div.side-by-side", h("div", beforeName, before), h("div", afterName, after));
  const note = h("p.status", { role: "status", "aria-live": "polite" });
  const judged = h("div.judged");
  const toml = h("pre.output", { tabindex: "0", "aria-label": "Recipe" });
  const recipeName = h("input", { value: "tuned", spellcheck: "false", autocomplete: "off", maxlength: 100 });
  const saveProblem = h("p.problem", { role: "alert" });
  const reset = h("button.plain", { type: "button", onclick: () => choose() }, "Reset");

  fill(
    main,
    h("h1.quiet", "Tune"),
    h(
      "form.request",
      { onsubmit: (event) => { event.preventDefault(); load(); } },
      h("div.ask", box, h("button.primary", { type: "submit" }, "Search")),
      h("div.options.two", field("Recipe", recipe), field("Compare with", other), projectField(projects, request.project, (name) => { request.project = name; load(); })),
    ),
    h(
      "div.columns.tune",
      h("section.card", { "aria-label": "Settings" }, h("div.bar", h("h2", "Settings"), reset), sliders),
      h(
        "div.stack",
        h(
          "section.card",
          { "aria-label": "Order" },
          note,
          sides,
        ),
        h("section.card", { "aria-label": "Saved judgements" }, h("h2", "Saved judgements"), judged),
        h(
          "section.card",
          { "aria-label": "Save as a recipe" },
          h("h2", "Save as a recipe"),
          field("Name", recipeName),
          saveProblem,
          toml,
          h(
            "div.buttons",
            caller.saves_recipes && h("button.primary", { type: "button", onclick: once(() => save()) }, "Save …"),
            h("button", { type: "button", onclick: () => copyText(toml.textContent, "the recipe") }, "Copy"),
            h("button", { type: "button", onclick: () => download(`${recipeName.value.replace(/[^\w-]+/g, "_") || "recipe"}.toml`, toml.textContent) }, "Download"),
          ),
          !caller.saves_recipes && h("p.muted", "Add the table to your ", h("code", "sennit.toml"), ". An administrator saves it from here, on a service started with ", h("code", "sennit open"), " or ", h("code", "sennit serve --save-recipes"), "."),
        ),
      ),
    ),
  );

  /** Begin with the settings of the chosen recipe, with changes of an address on top. */
  const choose = (changed = null) => {
    request.recipe = recipe.value === usual ? "" : recipe.value;
    const chosen = recipes.find((one) => one.name === recipe.value);
    settings = readSettings(chosen, changed);
    trial = null;
    showSliders(chosen);
    return load();
  };

  /** Search by the recipe of the sliders. They stay as they are. */
  const load = async () => {
    settle.cancel();
    confirm.cancel();
    showRecipe();
    remember();
    beforeName.textContent = other.value ? recipe.value : "Before";
    afterName.textContent = other.value || "After";
    sides.hidden = !request.q.trim();
    if (!request.q.trim()) {
      ask.cancel();
      trial = null;
      fill(before);
      fill(after);
      fill(note, "Type a query: the sliders then reorder its results.");
      return measure();
    }
    try {
      const found = await ask((signal) => post("/v1/trial", searchBody({ ...request, recipe: recipe.value }), { signal }));
      if (!found) return;
      trial = found;
      names = Object.fromEntries(found.hits.map((hit) => [hit.id, nameOf(hit)]));
      showScores();
      fill(before, found.hits.length ? found.hits.map((hit) => line(hit.id, hit.score, null)) : h("li.none", "Nothing is found."));
      if (other.value) await compare();
      else follow();
    } catch (error) {
      fill(note, h("span.problem", error.message));
    }
  };

  /** The settings of the sliders as fields of a request; without what is as in the recipe. */
  const changes = () => {
    const chosen = recipes.find((one) => one.name === recipe.value);
    const original = readSettings(chosen, null);
    const out = {};
    for (const name of ["fusion", "stages"]) if (JSON.stringify(settings[name]) !== JSON.stringify(original[name])) out[name] = settings[name];
    const thresholds = Object.entries(settings.thresholds).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(original.thresholds[name]));
    if (thresholds.length) out.thresholds = Object.fromEntries(thresholds);
    if (settings.min_relevance !== original.min_relevance) out.min_relevance = settings.min_relevance;
    return out;
  };

  const remember = () => {
    const changed = changes();
    keepAddress({ ...writeRequest(request), with: other.value, settings: Object.keys(changed).length ? JSON.stringify(changed) : "" });
  };

  const compare = async () => {
    const found = await confirm((signal) => post("/v1/trial", searchBody({ ...request, recipe: other.value }), { signal }));
    if (!found) return;
    for (const hit of found.hits) names[hit.id] ??= nameOf(hit);
    showAfter(found.hits.map((hit) => ({ id: hit.id, score: hit.score })));
    measure();
    fill(note, `${recipe.value} beside ${other.value}.`, moved());
  };

  const follow = () => {
    if (other.value || !trial) return settle();
    try {
      const out = rerank(trial.trace, { ...settings, similarity: trial.similarity });
      const candidates = trial.trace.candidates;
      showAfter(out.order.map(({ index, score }) => ({ id: candidates[index].id, score })));
      fill(note, out.estimated.length ? `At once from the lists at hand; ${out.estimated.join(", ")}: the engine checks …` : "At once from the lists at hand.");
    } catch (error) {
      fill(note, error.message);
    }
    settle();
  };

  const settle = debounce(async () => {
    remember();
    showRecipe();
    measure();
    if (!trial || other.value) return;
    try {
      const found = await confirm((signal) => post("/v1/trial", { ...searchBody({ ...request, recipe: recipe.value }), ...changes() }, { signal }));
      if (!found) return;
      for (const hit of found.hits) names[hit.id] ??= nameOf(hit);
      const same = JSON.stringify(found.hits.map((hit) => hit.id)) === JSON.stringify(idsOf(after));
      showAfter(found.hits.map((hit) => ({ id: hit.id, score: hit.score })));
      fill(note, h("span.badge.good", same ? "confirmed by the engine" : "corrected by the engine"), moved());
    } catch (error) {
      fill(note, h("span.problem", error.message));
    }
  }, PAUSE);

  const idsOf = (list) => [...list.querySelectorAll("[data-id]")].map((item) => item.dataset.id);

  const moved = () => {
    const old = idsOf(before);
    const fresh = idsOf(after);
    if (!old.length && !fresh.length) return " Nothing is found.";
    const count = Math.max(old.length, fresh.length) - fresh.filter((id, at) => old[at] === id).length;
    return count ? ` ${plural(count, "place")} changed.` : " The order is the same.";
  };

  const showAfter = (entries) => {
    const old = new Map(idsOf(before).map((id, at) => [id, at]));
    fill(after, entries.length ? entries.map(({ id, score }, at) => line(id, score, old.has(id) ? old.get(id) - at : "new")) : h("li.none", old.size ? "Nothing passes." : "Nothing is found."));
  };

  const line = (id, score, move) => {
    const item = h("li", { "data-id": id, title: names[id] ?? id }, h("span.name", names[id] ?? id), h("span.muted", number(score, 3)));
    if (move === "new") item.append(h("span.move.up", "new"));
    else if (move) item.append(h(move > 0 ? "span.move.up" : "span.move.down", `${move > 0 ? "↑" : "↓"}${Math.abs(move)}`));
    return item;
  };

  const showSliders = (chosen) => {
    const { fusion, stages, thresholds } = settings;
    const weights = Object.keys(fusion.weights ?? {}).map((name) =>
      slider(`weight of ${name}`, fusion.weights[name], 0, Math.max(2, Math.ceil(fusion.weights[name] * 2)), 0.01, (value) => { fusion.weights[name] = value; }, { colour: sourceClass(name) }));
    if (fusion.method === "rrf") weights.push(slider("k", fusion.k ?? 60, 0, 200, 1, (value) => { fusion.k = value; }));
    const shaping = stages.flatMap((stage) => {
      if (stage.stage === "mmr") return [slider("λ (relevance against repetition)", stage.relevance_weight, 0, 1, 0.01, (value) => { stage.relevance_weight = value; })];
      if (stage.stage === "decay") return [slider("recency", typeof stage.recency === "number" ? stage.recency : 0.1, 0, 1, 0.01, (value) => { stage.recency = value; })];
      return [];
    });
    scoreSliders.length = 0;
    const cuts = chosen.sources.flatMap((source) => {
      const own = thresholds[source.name];
      const isCosine = COSINES.includes(source.source);
      const out = [slider(`least score of ${source.name}`, own.min_score ?? 0, 0, 1, 0.01, (value) => { own.min_score = value || null; }, { colour: sourceClass(source.name), off: 0 })];
      if (!isCosine) scoreSliders.push({ name: source.name, own, element: out[0] });
      if (isCosine) out.push(slider(`greatest distance of ${source.name}`, own.max_distance ?? 2, 0, 2, 0.01, (value) => { own.max_distance = value >= 2 ? null : value; }, { colour: sourceClass(source.name), off: 2 }));
      return out;
    });
    cuts.push(slider("least relevance", settings.min_relevance, 0, 1, 0.01, (value) => { settings.min_relevance = value; }, { off: 0 }));
    fill(
      sliders,
      h("h3", "Fusion: ", fusion.method),
      weights.length ? weights : h("p.muted", "This fusion has no weights."),
      shaping.length > 0 && [h("h3", "Stages"), shaping],
      h("h3", "Thresholds"),
      cuts,
    );
    showScores();
  };

  /** Fit the sliders of scores without a fixed range to the scores at hand; nothing else of them changes under a hand. */
  const showScores = () => {
    for (const { name, own, element } of scoreSliders) {
      const highest = Math.max(highestScore(trial?.trace, name), own.min_score ?? 0);
      const input = element.querySelector("input");
      element.hidden = !highest;
      input.max = highest || 1;
      input.step = (highest || 1) / 100;
      input.value = own.min_score ?? 0;
    }
  };

  const slider = (label, value, low, high, step, change, { colour, off } = {}) => {
    const text = (current) => (current === off ? "off" : number(current, 3));
    const shown = h("output", text(value));
    const input = h("input", { type: "range", min: low, max: high, step, value });
    input.addEventListener("input", () => {
      const current = Number(input.value);
      change(current);
      shown.textContent = text(current);
      follow();
    });
    return h("label.slider", h("span", colour && h(`span.dot.${colour}`), label), input, shown);
  };

  const recipeBody = () => ({ name: recipeName.value.trim() || "tuned", recipe: recipe.value, ...changes() });

  const showRecipe = async () => {
    try {
      const found = await preview((signal) => post("/v1/recipes", recipeBody(), { signal }));
      if (!found) return;
      toml.textContent = found.toml;
      saveProblem.textContent = "";
    } catch (error) {
      saveProblem.textContent = error.message;
    }
  };

  const save = async () => {
    const body = recipeBody();
    let shown;
    try {
      shown = await post("/v1/recipes", body);
    } catch (error) {
      saveProblem.textContent = error.message;
      return recipeName.focus();
    }
    const problem = h("p.problem", { role: "alert" });
    const write = once(async () => {
      try {
        const found = await post("/v1/recipes", { ...body, write: true });
        dialog.close();
        toast(`Saved. The recipe ${found.name} works at once.`);
        ({ recipes, default: usual } = await get("/v1/recipes"));
        for (const select of [recipe, other]) {
          const option = h("option", { value: found.name }, found.name);
          select.append(option);
        }
        // What was chosen or typed meanwhile stays.
        if (recipeName.value.trim() === body.name) recipeName.value = freeName(found.name);
        if (recipe.value !== body.recipe) return;
        recipe.value = found.name;
        await choose();
      } catch (error) {
        problem.textContent = error.message;
      }
    });
    const dialog = showDialog(
      "Save the recipe",
      h("p", "This is added at the end of ", h("code", shown.file), ". Nothing else in the file changes."),
      h("pre.output", { tabindex: "0", "aria-label": "What is written" }, shown.toml),
      problem,
      h("div.buttons", h("button.primary", { type: "button", onclick: write }, "Write it"), h("button", { type: "button", onclick: () => dialog.close() }, "Cancel")),
    );
  };

  const freeName = (name) => {
    const base = name.replace(/-\d+$/, "");
    let at = 2;
    while (recipes.some((one) => one.name === `${base}-${at}`)) at++;
    return `${base}-${at}`;
  };

  /** Measure what is shown. A slider moves faster than many queries can be measured: the last setting is. */
  const measure = serial(async () => {
    if (!main.isConnected) return;
    try {
      const names = other.value ? [recipe.value, other.value] : [];
      const found = await post("/v1/trial/judged", { recipe: recipe.value, ...(other.value ? { compare_with: other.value } : changes()) });
      fill(judged, showMeasure(found, names), found.queries.length > 0 && h("div.buttons", h("button", { type: "button", onclick: downloadQrels }, "Download qrels")));
    } catch (error) {
      fill(judged, h("p.problem", error.message), h("div.buttons", h("button", { type: "button", onclick: measure }, "Try again")));
    }
  });

  const typed = debounce(() => load(), 150);
  box.addEventListener("input", () => {
    request.q = box.value;
    typed();
  });
  recipe.addEventListener("change", () => choose());
  other.addEventListener("change", load);
  const named = debounce(showRecipe, 150);
  recipeName.addEventListener("input", named);
  recipeName.value = recipes.some((one) => one.name === "tuned") ? freeName("tuned") : "tuned";
  await choose(parameters.get("settings"));
  return () => {
    for (const one of [settle, typed, named, ask, confirm, preview]) one.cancel();
  };
}

/** The settings that sliders change: those of a recipe, with changes of an address on top. */
function readSettings(recipe, stored) {
  const fusion = structuredClone(recipe.fusion);
  if (fusion.weights || fusion.method === "rrf") {
    fusion.weights = Object.fromEntries(recipe.sources.map((source) => [source.name, fusion.weights?.[source.name] ?? fusion.weights?.["*"] ?? 1]));
  }
  const thresholds = Object.fromEntries(recipe.sources.map((source) => [source.name, thresholdOf(source)]));
  const settings = { fusion, stages: structuredClone(recipe.stages), thresholds, min_relevance: recipe.min_relevance ?? 0 };
  try {
    const changed = stored ? JSON.parse(stored) : {};
    if (changed.fusion?.method === fusion.method) Object.assign(settings.fusion, changed.fusion);
    if (Array.isArray(changed.stages) && changed.stages.length === settings.stages.length) settings.stages = changed.stages;
    for (const name of Object.keys(changed.thresholds ?? {})) if (name in thresholds) Object.assign(thresholds[name], changed.thresholds[name]);
    if (typeof changed.min_relevance === "number") settings.min_relevance = changed.min_relevance;
  } catch {
    // An address that somebody shortened: the recipe as it is.
  }
  return settings;
}

function highestScore(trace, name) {
  let highest = 0;
  for (const candidate of trace?.candidates ?? []) for (const one of candidate.sources) if (one.source === name && one.rank) highest = Math.max(highest, one.score ?? 0);
  return highest;
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

/** `names` are of the two recipes that are compared; none for what the sliders change. */
function showMeasure(found, names) {
  if (!found.queries.length) return h("p.muted", "Grade results with the keys 0 to 3 in the view Search. Every change of a slider, and a recipe to compare with, is then measured on the graded queries.");
  const [first, second] = names.map((name) => h("span.name", { title: name }, name));
  const flips = found.queries.filter((one) => one.after !== one.before || one.first_changes);
  return [
    h("p.ndcg", "nDCG@10 ", first, " ", h("strong", number(found.before, 3)), " → ", second, " ", h(found.after >= found.before ? "strong.up" : "strong.down", number(found.after, 3)), h("span.muted", ` over ${plural(found.queries.length, "query", "queries")}`)),
    flips.length
      ? h(
          "ul.flips",
          { "aria-label": names.length ? "Queries that differ" : "Queries that change" },
          flips.map((one) => h("li", h("span.name", { title: one.query }, one.query), one.first_changes && h("span.badge", "another first"), h(one.after >= one.before ? "span.move.up" : "span.move.down", `${number(one.before, 3)} → ${number(one.after, 3)}`))),
        )
      : h("p.muted", names.length ? "No query differs." : "No query changes."),
  ];
}
