// The view of a search: the request, the results, the way of every candidate, and why a record is missing.

import { get, latest, mayPass, post } from "./api.js";
import { announce, debounce, field, fill, h, localDay, menu, milliseconds, number, plural, sourceClass, storedTime, tabs, toast } from "./dom.js";
import { excerpt, marked, plainText } from "./excerpt.js";
import { copyMenu, searchBody } from "./export.js";
import { factsView, loadAround, namesOf } from "./facts.js";
import { filterBox, isComplete } from "./filter.js";
import { flow } from "./flow.js";
import { loadProjects, projectField } from "./project.js";
import { citation, openSource } from "./source.js";
import { whyNot } from "./why.js";

export const title = "Search";
const TYPING_PAUSE = 120;
const GRADES = ["not relevant", "related", "relevant", "exactly right"];

export function readRequest(parameters) {
  return {
    q: parameters.get("q") ?? "",
    recipe: parameters.get("recipe") ?? "",
    filter: parameters.get("filter") ?? "",
    collections: parameters.getAll("in"),
    project: parameters.get("project") ?? "",
    limit: Number(parameters.get("limit")) || 0,
  };
}

export function writeRequest(request) {
  return { q: request.q, recipe: request.recipe, filter: request.filter, in: request.collections, project: request.project, limit: request.limit || "" };
}

export async function show(main, parameters, { remember: keepAddress }) {
  const request = readRequest(parameters);
  const [{ recipes, default: usual }, { collections }, projects] = await Promise.all([get("/v1/recipes"), get("/v1/collections"), loadProjects()]);
  const ask = latest();
  let answer = null;
  let figure = null;

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
    h("option", { value: "" }, usual === "default" ? usual : `${usual} (default)`),
    recipes.filter((one) => one.name !== usual).map((one) => h("option", { value: one.name, title: one.about }, one.name)),
  );
  recipe.value = request.recipe;
  // A recipe of the address that does not exist is named, as the error names it.
  if (recipe.selectedIndex < 0) {
    recipe.append(h("option", { value: request.recipe }, request.recipe));
    recipe.value = request.recipe;
  }
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
  const factsPanel = h("section");
  const askFacts = latest();
  // What the panels show, which is part of the address too.
  const inside = { tab: parameters.get("tab") ?? "way", record: parameters.get("record") ?? "", entity: parameters.get("entity") ?? "", asOf: parameters.get("as_of") ?? "" };
  let factsOf = null;
  let whyOf = null;
  const why = whyNot(request, (reference) => {
    inside.record = reference;
    whyOf = answer;
    remember();
  });
  const panels = tabs("Look into the search", [
    { id: "way", label: "Every candidate", panel: flowPanel },
    { id: "why", label: "Why not?", panel: whyPanel },
    { id: "facts", label: "Facts around", panel: factsPanel },
  ], (id) => {
    inside.tab = id;
    remember();
    if (id === "way") figure?.redraw();
    if (id === "why") showWhy();
    if (id === "facts") showFacts();
  });
  const remember = () =>
    keepAddress({
      ...writeRequest(request),
      tab: inside.tab === "way" ? "" : inside.tab,
      record: inside.tab === "why" ? inside.record : "",
      entity: inside.tab === "facts" ? inside.entity : "",
      as_of: inside.tab === "facts" ? inside.asOf : "",
    });
  const copy = copyMenu(() => ({ request, answer }));
  const columns = h("div.columns");

  fill(
    main,
    h("h1.quiet", "Search"),
    h(
      "form.request",
      {
        role: "search",
        onsubmit: async (event) => {
          event.preventDefault();
          const from = document.activeElement;
          const asked = box.value;
          const isShown = await run();
          // Who went on typing, or elsewhere, meanwhile is not interrupted.
          if (isShown && document.activeElement === from && box.value === asked) results.querySelector("article")?.focus();
        },
      },
      h("div.ask", box, h("button.primary", { type: "submit" }, "Search")),
      h(
        "div.options",
        field("Recipe", recipe),
        projectField(projects, request.project, (name) => {
          request.project = name;
          run();
        }),
        h("div.field", h("span.label#collections-label", "Collections"), picker),
        h("label.field.wide", h("span.label", "Filter"), filter.element),
        field("Results", limit),
      ),
    ),
    columns,
  );
  fill(
    columns,
    h("section.found", { "aria-label": "Found" }, h("div.bar", status, copy), results),
    h("section.inside-view", { "aria-label": "Inside" }, panels.list, flowPanel, whyPanel, factsPanel),
  );

  /** Search, and return whether the answer is shown. */
  const run = async () => {
    changed.cancel();
    remember();
    if (!request.q.trim()) {
      ask.cancel();
      answer = null;
      showNothing();
      return false;
    }
    results.setAttribute("aria-busy", "true");
    try {
      const found = await ask((signal) => post("/v1/search", searchBody(request, { explain: true, excerpts: true }), { signal }));
      if (found === undefined) return false;
      answer = found;
      showAnswer();
      return true;
    } catch (error) {
      answer = null;
      results.setAttribute("aria-busy", "false");
      figure?.stop();
      columns.classList.remove("alone");
      fill(results);
      fill(flowPanel, h("p.muted.hint-box", "Nothing to show: the search failed."));
      fill(status, h("span.problem", error.message), mayPass(error) && h("button", { type: "button", onclick: run }, "Try again"));
      return false;
    }
  };
  const changed = debounce(run, TYPING_PAUSE);

  const showNothing = () => {
    figure?.stop();
    figure = null;
    const records = collections.reduce((sum, one) => sum + one.records, 0);
    columns.classList.toggle("alone", !records);
    results.setAttribute("aria-busy", "false");
    fill(results, !records && firstSteps());
    fill(status, records ? [`${plural(records, "record")} in ${plural(collections.length, "collection")}. `, h("span.wide-only", "Press ", h("kbd", "/"), " to search from anywhere.")] : "");
    fill(factsPanel, h("p.muted.hint-box", "Search, and see here the facts around the people and things that the results name."));
    fill(flowPanel, h("p.muted.hint-box", "Search, and see here how every candidate fared: which source found it, what the fusion and each stage made of it, and where it was dropped."));
    fill(whyPanel, h("p.muted.hint-box", "Search first. Then paste the id or the text of a record that you expected."));
  };

  const showAnswer = () => {
    columns.classList.remove("alone");
    results.setAttribute("aria-busy", "false");
    fill(
      status,
      h("span", answer.hits.length ? `${plural(answer.hits.length, "result")} of ${plural(answer.trace?.candidates?.length ?? answer.hits.length, "candidate")} in ${milliseconds(answer.milliseconds)}` : "Nothing found"),
      answer.hits.length > 0 && h(answer.fits ? "span.badge.good" : "span.badge.bad", answer.fits ? "fits" : "nothing fits"),
      answer.degraded.map((one) => h("span.badge.bad", { title: one.reason }, `degraded: ${one.source}`)),
    );
    fill(
      results,
      answer.degraded.length > 0 &&
        h("li.notice.bad", h("strong", "Degraded: "), `${answer.degraded.map((one) => one.source).join(", ")} did not answer. The results are those of the other sources.`, h("ul", answer.degraded.map((one) => h("li", `${one.source}: ${one.reason}`)))),
      answer.hits.map((hit) => result(hit)),
      !answer.hits.length && (answer.hints ?? []).map((hint) => h("li.hint-box", h("p", hint.message), hint.command && h("code", hint.command))),
    );
    figure?.stop();
    const names = Object.fromEntries(answer.hits.map((hit) => [hit.id, nameOf(hit)]));
    figure = answer.trace.candidates.length
      ? flow(answer.trace, {
          titles: names,
          onchoose: (candidate) => openCandidate(candidate),
          onhover: (id) => {
            for (const item of results.querySelectorAll("article")) item.classList.toggle("pointed", item.dataset.id === id);
          },
        })
      : null;
    fill(flowPanel, legend(answer.trace), figure ?? h("p.muted.hint-box", "No source found a candidate."));
    figure?.redraw();
    // It stays while answers come: what is being typed into it is not lost.
    if (!why.isConnected) fill(whyPanel, why);
    if (inside.tab === "why") showWhy();
    factsOf = null;
    if (inside.tab === "facts") showFacts();
    announce(`${plural(answer.hits.length, "result")}. ${answer.fits ? "" : "Nothing fits."}`);
  };

  /** Explain the record of the address again when the search is another one. */
  const showWhy = () => {
    if (answer && inside.record && whyOf !== answer) why.explain(inside.record);
  };

  const showFacts = async () => {
    if (!answer || factsOf === answer) return;
    factsOf = answer;
    const names = namesOf(request.q, answer.hits);
    try {
      const found = await askFacts((signal) => loadAround(names, signal));
      if (!found) return;
      const centre = names.filter((name) => found.facts.some((fact) => fact.subject === name || fact.object === name)).slice(0, 2);
      fill(
        factsPanel,
        found.facts.length
          ? factsView({ ...found, centre, entity: inside.entity, asOf: inside.asOf, onchange: (chosen) => { Object.assign(inside, chosen); remember(); } })
          : h("p.muted.hint-box", "No facts name the people and things of these results. ", h("code", "sennit facts add"), " stores one."),
      );
    } catch (error) {
      factsOf = null;
      fill(factsPanel, h("p.problem", error.message));
    }
  };

  const openCandidate = async (candidate) => {
    const hit = answer.hits.find((one) => one.id === candidate.id);
    if (hit) {
      const item = articleOf(candidate.id);
      item?.focus();
      item?.scrollIntoView({ block: "center" });
      return;
    }
    inside.record = candidate.id;
    whyOf = null;
    why.write(candidate.id);
    if (inside.tab === "why") showWhy();
    panels.select("why", true);
  };

  const articleOf = (id) => [...results.querySelectorAll("article")].find((one) => one.dataset.id === id);

  const result = (hit) => {
    const shares = hit.explanation?.sources ?? [];
    // A short text is its own heading: it is not shown twice.
    const speaker = typeof hit.metadata.speaker === "string" ? hit.metadata.speaker : "";
    const isWhole = plainText(hit.excerpt) === nameOf(hit);
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
            grade(hit, Number(event.key));
          }
          const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
          if (step) {
            event.preventDefault();
            const all = [...results.querySelectorAll("article")];
            all[all.indexOf(article) + step]?.focus();
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
        h(`h2#hit-${hit.rank}`, speaker && h("span.muted", `${speaker}: `), isWhole ? marked(hit.excerpt[0].parts) : nameOf(hit)),
        relevance(hit),
      ),
      shareBar(shares),
      !isWhole && excerpt(hit.excerpt),
      h(
        "div.hit-foot",
        h(
          "p.meta",
          citation(hit),
          h("span", hit.collection),
          hit.kind && h("span", hit.kind),
          speaker && hit.parent && h("a", { href: `#/memory?session=${encodeURIComponent(hit.parent)}` }, hit.parent),
          projects.length > 1 && hit.project && h("span", { title: "The project, and the git revision that was indexed" }, hit.revision ? `${hit.project} · ${hit.revision}` : hit.project),
          hit.timestamp && h("time", { datetime: hit.timestamp }, localDay(storedTime(hit.timestamp))),
          h("span", { title: "The score decides the order; its scale is the recipe's." }, `score ${number(hit.score)}`),
        ),
        gradeButtons(hit),
      ),
    );
    return h("li", article);
  };

  const gradeButtons = (hit) =>
    h(
      "span.grades",
      { role: "group", "aria-label": `Grade result ${hit.rank}` },
      GRADES.map((meaning, value) => h("button", { type: "button", title: `${value}: ${meaning}`, "aria-label": `${value}: ${meaning}`, "aria-pressed": "false", onclick: () => grade(hit, value) }, value)),
    );

  const grade = async (hit, value) => {
    const graded = answer;
    try {
      await post("/v1/feedback", { query_id: graded.query_id, action_name: "judge", object_id: hit.id, grade: value, application: "page" });
    } catch (error) {
      toast(error.message);
      return;
    }
    if (answer !== graded) return;
    const article = articleOf(hit.id);
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
  if (["why", "facts"].includes(inside.tab)) panels.select(inside.tab);
  why.write(inside.record);
  if (request.q) run();
  else if (document.activeElement === document.body && matchMedia("(hover: hover)").matches) box.focus();
  return () => {
    changed.cancel();
    ask.cancel();
    askFacts.cancel();
    figure?.stop();
  };
}

export function nameOf(record) {
  if (record.title) return record.title;
  const line = record.text.trim().split("\n")[0];
  return line.length > 90 ? `${line.slice(0, 90)}…` : line || record.id;
}

function relevance(hit) {
  const percent = Math.round(hit.relevance * 100);
  const element = h(
    hit.fits ? "span.relevance" : "span.relevance.low",
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

/** What to do with an empty database. */
function firstSteps() {
  const step = (command, text) => h("li", h("code", command), h("span", text));
  return h(
    "li.first-steps.card",
    h("h2", "Nothing to search yet"),
    h("p", "There are no records here that you may see. In the folder of the database, run one of these; the page finds the records at once."),
    h(
      "ul",
      step("sennit index .", "index this folder: text, documentation, code"),
      step("sennit import FILE.jsonl", "add records of your own"),
      step('sennit remember "Priya prefers mornings"', "store a memory"),
      step("sennit demo", "see every recipe on sample data"),
    ),
    h("p", h("button.primary", { type: "button", onclick: () => location.reload() }, "Look again")),
  );
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
  const details = menu(summary, h("div.menu-items", boxes.length ? boxes : h("p.muted", "No records.")));
  details.addEventListener("change", () => {
    const names = [...details.querySelectorAll("input:checked")].map((input) => input.value);
    summary.firstChild.textContent = label(names);
    onchange(names);
  });
  return details;
}

function label(names) {
  if (!names.length) return "all";
  return names.length < 3 ? names.join(", ") : `${names.length} chosen`;
}
