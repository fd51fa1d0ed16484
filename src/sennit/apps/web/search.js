// The view of a search: the request, the results, the way of every candidate, and why a record is missing.

import { get, latest, post } from "./api.js";
import { replaceAddress } from "./address.js";
import { announce, debounce, field, fill, h, milliseconds, number, plural, sourceClass, tabs, toast } from "./dom.js";
import { copyMenu, searchBody } from "./export.js";
import { filterBox, isComplete } from "./filter.js";
import { flow } from "./flow.js";
import { passage, stems } from "./highlight.js";
import { citation, openSource } from "./source.js";
import { whyNot } from "./why.js";

export const title = "Search";
const TYPING_PAUSE = 120;
const FITS = 0.18;
const GRADES = ["not relevant", "related", "relevant", "exactly right"];

export function readRequest(parameters) {
  return {
    q: parameters.get("q") ?? "",
    recipe: parameters.get("recipe") ?? "",
    filter: parameters.get("filter") ?? "",
    collections: parameters.getAll("in"),
    limit: Number(parameters.get("limit")) || 0,
  };
}

export function writeRequest(request) {
  return { q: request.q, recipe: request.recipe, filter: request.filter, in: request.collections, limit: request.limit || "" };
}

export async function show(main, parameters, caller) {
  const request = readRequest(parameters);
  const [{ recipes, default: usual }, { collections }] = await Promise.all([get("/v1/recipes"), get("/v1/collections")]);
  const ask = latest();
  let answer = null;
  let figure = null;
  let why = null;

  const box = h("input", {
    type: "search",
    value: request.q,
    placeholder: "Ask a question, or type a few words",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Search",
    enterkeyhint: "search",
  });
  const recipe = h(
    "select",
    h("option", { value: "" }, `${usual} (the default)`),
    recipes.filter((one) => one.name !== usual).map((one) => h("option", { value: one.name, title: one.about }, one.name)),
  );
  recipe.value = request.recipe;
  const limit = h("input", { type: "number", min: 1, max: 1000, value: request.limit || "", placeholder: "auto" });
  const filter = filterBox(request.filter, (text) => {
    // Half a condition finds nothing but an error.
    if (!isComplete(text)) return;
    request.filter = text.trim();
    changed();
  });
  const picker = collectionPicker(collections, request.collections, (names) => {
    request.collections = names;
    changed();
  });
  const status = h("p.status", { role: "status", "aria-live": "polite" });
  const results = h("ol.results", { "aria-label": "Results" });
  const flowPanel = h("section");
  const whyPanel = h("section");
  const panels = tabs("Look into the search", [
    { id: "way", label: "The way of every candidate", panel: flowPanel },
    { id: "why", label: "Why not?", panel: whyPanel },
  ], (id) => {
    if (id === "way") figure?.redraw();
  });
  const copy = copyMenu(() => ({ request, answer }));

  fill(
    main,
    h("h1.quiet", "Search"),
    h(
      "form.request",
      {
        role: "search",
        onsubmit: async (event) => {
          event.preventDefault();
          await run();
          results.querySelector("article")?.focus();
        },
      },
      h("div.ask", box, h("button.primary", { type: "submit" }, "Search")),
      h(
        "div.options",
        field("Recipe", recipe),
        h("div.field", h("span.label#collections-label", "Collections"), picker),
        h("label.field.wide", h("span.label", "Filter"), filter.element),
        field("Results", limit),
      ),
    ),
    h(
      "div.columns",
      h("section.found", { "aria-label": "Found" }, h("div.bar", status, copy), results),
      h("section.inside-view", { "aria-label": "Inside" }, panels.list, flowPanel, whyPanel),
    ),
  );

  const run = async () => {
    changed.cancel();
    replaceAddress("search", writeRequest(request));
    if (!request.q.trim()) {
      await ask(async () => null);
      answer = null;
      return showNothing();
    }
    try {
      const found = await ask((signal) => post("/v1/search", searchBody(request, { explain: true }), { signal }));
      if (found === undefined) return;
      answer = found;
      showAnswer();
    } catch (error) {
      answer = null;
      figure?.stop();
      fill(results);
      fill(flowPanel);
      fill(status, h("span.problem", error.message));
    }
  };
  const changed = debounce(run, TYPING_PAUSE);

  const showNothing = () => {
    figure?.stop();
    figure = null;
    fill(results);
    fill(status, `${plural(collections.reduce((sum, one) => sum + one.records, 0), "record")} in ${plural(collections.length, "collection")}. Press / to search from anywhere.`);
    fill(flowPanel, h("p.muted.hint-box", "Search, and see here how every candidate fared: which source found it, what the fusion and each stage made of it, and where it was dropped."));
    fill(whyPanel, h("p.muted.hint-box", "Search first. Then paste the id or the text of a record that you expected."));
  };

  const showAnswer = () => {
    const wanted = stems(request.q);
    fill(
      status,
      h("span", answer.hits.length ? `${plural(answer.hits.length, "result")} of ${plural(answer.trace?.candidates?.length ?? answer.hits.length, "candidate")} in ${milliseconds(answer.milliseconds)}` : "Nothing found"),
      h(answer.fits ? "span.badge.good" : "span.badge.bad", answer.fits ? "fits" : "nothing fits"),
      answer.degraded.map((one) => h("span.badge.bad", { title: one.reason }, `degraded: ${one.source}`)),
    );
    fill(
      results,
      answer.hits.map((hit) => result(hit, wanted)),
      !answer.hits.length && (answer.hints ?? []).map((hint) => h("li.hint-box", h("p", hint.message), hint.command && h("code", hint.command))),
    );
    figure?.stop();
    const names = Object.fromEntries(answer.hits.map((hit) => [hit.id, nameOf(hit)]));
    figure = flow(answer.trace, {
      titles: names,
      onchoose: (candidate) => openCandidate(candidate),
      onhover: (id) => {
        for (const item of results.querySelectorAll("article")) item.classList.toggle("pointed", item.dataset.id === id);
      },
    });
    fill(flowPanel, legend(answer.trace), figure, degradedNote(answer));
    figure.redraw();
    why = whyNot(request, () => answer);
    fill(whyPanel, why);
    announce(`${plural(answer.hits.length, "result")}. ${answer.fits ? "" : "Nothing fits."}`);
  };

  const openCandidate = async (candidate) => {
    const hit = answer.hits.find((one) => one.id === candidate.id);
    if (hit) {
      const item = [...results.querySelectorAll("article")].find((one) => one.dataset.id === candidate.id);
      item?.focus();
      item?.scrollIntoView({ block: "center" });
      return;
    }
    panels.select("why", true);
    why.explain(candidate.id);
  };

  const result = (hit, wanted) => {
    const shares = hit.explanation?.sources ?? [];
    const article = h(
      "article",
      {
        tabindex: "0",
        "data-id": hit.id,
        "aria-labelledby": `hit-${hit.rank}`,
        onpointerenter: () => figure?.highlight(hit.id),
        onfocus: () => figure?.highlight(hit.id),
        onkeydown: (event) => {
          if (event.target !== event.currentTarget) return;
          if (/^[0-3]$/.test(event.key)) {
            event.preventDefault();
            grade(hit, Number(event.key), article);
          }
          const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
          if (step) {
            event.preventDefault();
            results.children[hit.rank - 1 + step]?.querySelector("article")?.focus();
          }
          if (event.key === "Enter" || event.key === "o") {
            // Otherwise the same key press would also press the button that gets the focus.
            event.preventDefault();
            openSource(hit);
          }
        },
      },
      h(
        "div.hit-head",
        h("span.rank", hit.rank),
        h(`h2#hit-${hit.rank}`, nameOf(hit)),
        relevance(hit.relevance),
      ),
      shareBar(shares),
      h("p.passage", passage(hit.text, wanted)),
      h(
        "p.meta",
        citation(hit),
        h("span", hit.collection),
        hit.kind && h("span", hit.kind),
        hit.timestamp && h("time", { datetime: hit.timestamp }, hit.timestamp.slice(0, 10)),
        h("span", { title: "The score decides the order; its scale is the recipe's." }, `score ${number(hit.score)}`),
        gradeButtons(hit, () => article),
      ),
    );
    return h("li", article);
  };

  const gradeButtons = (hit, article) =>
    h(
      "span.grades",
      { role: "group", "aria-label": `Grade result ${hit.rank}` },
      GRADES.map((meaning, value) => h("button", { type: "button", title: `${value}: ${meaning}`, "aria-label": `${value}: ${meaning}`, "aria-pressed": "false", onclick: () => grade(hit, value, article()) }, value)),
    );

  const grade = async (hit, value, article) => {
    try {
      await post("/v1/feedback", { query_id: answer.query_id, action_name: "judge", object_id: hit.id, grade: value, application: "page" });
    } catch (error) {
      toast(error.message);
      return;
    }
    [...article.querySelectorAll(".grades button")].forEach((button, at) => button.setAttribute("aria-pressed", String(at === value)));
    announce(`Result ${hit.rank}: grade ${value}, ${GRADES[value]}.`);
  };

  box.addEventListener("input", () => {
    request.q = box.value;
    changed();
  });
  recipe.addEventListener("change", () => {
    request.recipe = recipe.value;
    run();
  });
  limit.addEventListener("input", () => {
    request.limit = Math.max(0, Math.min(1000, Math.floor(Number(limit.value) || 0)));
    changed();
  });
  showNothing();
  if (request.q) run();
  else if (matchMedia("(hover: hover)").matches) box.focus();
  return () => figure?.stop();
}

export function nameOf(record) {
  if (record.title) return record.title;
  const line = record.text.trim().split("\n")[0];
  return line.length > 90 ? `${line.slice(0, 90)}…` : line || record.id;
}

function relevance(value) {
  const percent = Math.round(value * 100);
  const element = h(
    value >= FITS ? "span.relevance" : "span.relevance.low",
    { title: "The calibrated chance that it answers the query" },
    h("span.meter", { "aria-hidden": "true" }, h("span", { style: { width: `${percent}%` } })),
    `${percent} %`,
    h("span.quiet", "relevance"),
  );
  return element;
}

/** The share of each source in the fused score, as one bar. */
export function shareBar(shares) {
  const positive = shares.filter((one) => one.share > 0);
  const total = positive.reduce((sum, one) => sum + one.share, 0);
  if (!total) return null;
  const label = positive.map((one) => `${one.source} ${Math.round((100 * one.share) / total)} %`).join(", ");
  return h(
    "div.shares",
    { role: "img", "aria-label": `Shares: ${label}`, title: label },
    positive.map((one) => h(`span.${sourceClass(one.source)}`, { style: { "flex-grow": String(one.share / total) } })),
  );
}

function legend(trace) {
  return h(
    "ul.legend",
    { "aria-label": "Sources" },
    trace.sources.map((source) => h("li", h(`span.dot.${sourceClass(source.name)}`), source.name, source.error && h("span.badge.bad", "failed"))),
  );
}

function degradedNote(answer) {
  return answer.degraded.map((one) => h("p.problem", `${one.source} failed: ${one.reason}`));
}

function collectionPicker(collections, chosen, onchange) {
  const summary = h("summary", { "aria-labelledby": "collections-label collections-value" }, h("span#collections-value", label(chosen)));
  const boxes = collections.map((one) =>
    h(
      "label.check",
      h("input", { type: "checkbox", value: one.name, checked: chosen.includes(one.name) }),
      h("span", one.name),
      h("span.muted", one.records.toLocaleString("en")),
    ),
  );
  const details = h("details.menu", summary, h("div.menu-items", boxes.length ? boxes : h("p.muted", "No records.")));
  details.addEventListener("change", () => {
    const names = [...details.querySelectorAll("input:checked")].map((input) => input.value);
    summary.firstChild.textContent = label(names);
    onchange(names);
  });
  details.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      details.open = false;
      summary.focus();
    }
  });
  details.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !details.contains(event.relatedTarget)) details.open = false;
  });
  return details;
}

function label(names) {
  if (!names.length) return "all";
  return names.length < 3 ? names.join(", ") : `${names.length} chosen`;
}
