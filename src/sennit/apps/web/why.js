// Why not? Where a record was lost, and the smallest change that would admit it, tried out by the server.

import { latest, post } from "./api.js";
import { field, fill, h, number, sourceClass } from "./dom.js";
import { searchBody } from "./export.js";

/** The form. `onask` hears which record is asked for; `write` puts one into the form, and `explain` asks for it. */
export function whyNot(request, onask) {
  const input = h("textarea", { rows: 2, placeholder: "An id, path:lines, or the text of a record", spellcheck: "false" });
  const outcome = h("div.outcome", { "aria-live": "polite" });
  const form = h(
    "form.why",
    {
      onsubmit: (event) => {
        event.preventDefault();
        if (input.value.trim()) ask(input.value.trim());
      },
    },
    field("Which record did you expect?", input),
    h("button.primary", "Explain"),
    outcome,
  );

  const asking = latest();
  const ask = async (reference) => {
    fill(outcome, h("p.muted", "Looking …"));
    onask(reference);
    try {
      const found = await asking((signal) => post("/v1/why", { ...searchBody(request), reference }, { signal }));
      if (found) fill(outcome, describe(found));
    } catch (error) {
      fill(outcome, h("p.problem", error.message));
    }
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  form.write = (reference) => {
    input.value = reference;
  };
  form.explain = ask;
  return form;
}

function describe(found) {
  const { why, record, changes, tried } = found;
  return [
    h("p.flow-name", h("strong", record.title || record.id), h("code", record.id)),
    h(
      why.kept ? "p.verdict.good" : "p.verdict.bad",
      why.kept ? `It is in the result, at rank ${why.rank}.` : `Lost at: ${why.stage.replace(/^source:/, "source ")}.`,
    ),
    h("p", why.reason),
    why.number !== null && !why.kept && !(why.needed !== null && why.number > why.needed) && h("p.numbers", "It has ", h("strong", number(why.number)), why.needed !== null && [", it needed ", h("strong", number(why.needed))], "."),
    why.sources.length > 0 && sourceTable(why.sources),
    !why.kept && h("h3", "What would admit it"),
    !why.kept &&
      (changes.length
        ? h("ol.changes", changes.map((change) => h("li", h("span.badge", change.kind), " ", change.message, h("span.muted", ` Then it is at rank ${change.rank}.`))))
        : h("p.muted", `No single change admits it; ${tried} were tried.`)),
  ];
}

function sourceTable(sources) {
  return h(
    "table.numbers-table",
    h("thead", h("tr", ["source", "rank", "score", "share"].map((name) => h("th", { scope: "col" }, name)))),
    h(
      "tbody",
      sources.map((one) =>
        h("tr", h("th", { scope: "row" }, h(`span.dot.${sourceClass(one.source)}`), one.source), h("td", { "data-head": "rank" }, one.rank ?? "–"), h("td", { "data-head": "score" }, number(one.score)), h("td", { "data-head": "share" }, number(one.share))),
      ),
    ),
  );
}
