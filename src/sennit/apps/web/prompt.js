// What enters the prompt: the memory block, or the plan of code within its budget, and the episodes.

import { get, post, query } from "./api.js";
import { copyText, field, fill, h, plural } from "./dom.js";

export const title = "Prompt";

export async function show(main, parameters, caller) {
  const box = h("textarea", { rows: 2, placeholder: "A task or a question", spellcheck: "false" });
  box.value = parameters.get("q") ?? "";
  const kind = h("select", h("option", { value: "context" }, "memory block"), h("option", { value: "plan" }, "code plan"));
  kind.value = parameters.get("kind") ?? "context";
  const budget = h("input", { type: "number", min: 1, max: 1000000, value: 4000 });
  const episode = h("input", { spellcheck: "false", placeholder: caller.write ? "none" : "needs write access", disabled: !caller.write });
  const out = h("div.cards.single", { "aria-live": "polite" });
  const run = async () => {
    const text = box.value.trim();
    if (!text) return;
    fill(out, h("p.muted", "Planning …"));
    try {
      if (kind.value === "context") fill(out, await memoryBlock(text));
      else {
        const body = { query: text, max_tokens: Number(budget.value) || 4000, ...(episode.value.trim() ? { episode: episode.value.trim() } : {}) };
        fill(out, plan(await post("/v1/plan", body)));
      }
    } catch (error) {
      fill(out, h("p.problem", error.message));
    }
  };
  const lookUp = h("input", { spellcheck: "false", placeholder: "name of an episode" });
  const turns = h("div.cards.single");
  const inspect = async (turn) => {
    try {
      const found = await get(`/introspect/hydration/${encodeURIComponent(lookUp.value.trim())}?${query({ turn })}`);
      fill(
        turns,
        h("div.turns", { role: "group", "aria-label": "Turns" }, found.turns.map((one) => h("button", { type: "button", "aria-pressed": String(one === found.turn), onclick: () => inspect(one) }, `turn ${one}`))),
        plan({
          ...found,
          tokens: found.token_count,
          entries: found.entities.map((one) => ({ ...one, key: one.entity_key, tokens: one.token_count, preview: one.content })),
          dropped: found.dropped.map((one) => ({ ...one, key: one.entity_key, tokens: one.token_count })),
        }, `Turn ${found.turn}`),
      );
    } catch (error) {
      fill(turns, h("p.problem", error.message));
    }
  };
  fill(
    main,
    h("h1", "What enters the prompt"),
    h("form.request", { onsubmit: (event) => { event.preventDefault(); run(); } },
      field("Task", box),
      h("div.options.two", field("What", kind), field("Budget in tokens", budget), field("Episode", episode)),
      h("div", h("button.primary", "Plan"))),
    out,
    h("section.card", { "aria-label": "Episodes" }, h("h2", "Episodes"), h("p.muted", "A plan within an episode is stored. Here is what each turn put into the prompt."),
      h("form.inline", { onsubmit: (event) => { event.preventDefault(); inspect(); } }, field("Episode", lookUp), h("button", "Show")), turns),
  );
  if (box.value) run();
}

async function memoryBlock(text) {
  const [block, found] = await Promise.all([
    get(`/v1/context?${query({ query: text, format: "prompt", provenance: "true" })}`),
    get(`/v1/context?${query({ query: text })}`),
  ]);
  return [
    h("section.card", { "aria-label": "Block" },
      h("div.bar", h("h2", "Memory block"), h("button", { type: "button", onclick: () => copyText(block, "the block") }, "Copy")),
      h("p.muted", `${plural(found.results.length, "memory", "memories")}, about ${plural(Math.ceil(block.length / 4), "token")}.`),
      block ? h("pre.output", { tabindex: "0", "aria-label": "Memory block" }, block) : h("p.muted", "Nothing is remembered about that.")),
  ];
}

function plan(found, name = "Plan") {
  const used = found.tokens;
  const isAnchor = (entry) => entry.reason.startsWith("anchor");
  return [
    h("section.card", { "aria-label": name },
      h("div.bar", h("h2", name), found.prompt && h("button", { type: "button", onclick: () => copyText(found.prompt, "the block") }, "Copy")),
      h("p", `${used.toLocaleString("en")} of ${found.max_tokens.toLocaleString("en")} tokens (${found.tokenizer}).`),
      h("div.budget", { role: "img", "aria-label": `${Math.round((100 * used) / found.max_tokens)} % of the budget` },
        found.entries.map((entry) => h(isAnchor(entry) ? "span.anchor" : "span.semantic", { title: `${entry.key}: ${entry.tokens} tokens`, style: { width: `${(100 * entry.tokens) / found.max_tokens}%` } }))),
      h("ul.legend", h("li", h("span.dot.anchor"), "named (anchors)"), h("li", h("span.dot.semantic"), "by meaning")),
      h("table.numbers-table",
        h("thead", h("tr", ["entity", "why", "tokens"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", found.entries.map((entry) => h("tr", h("th", { scope: "row" }, h(isAnchor(entry) ? "span.dot.anchor" : "span.dot.semantic"), h("code", entry.key), entry.partial && h("span.badge", "shortened")), h("td", entry.reason), h("td", entry.tokens.toLocaleString("en"))))))),
    found.dropped.length > 0 && h("section.card", { "aria-label": `Cut from ${name}` }, h("h2", "What the budget cut"),
      h("table.numbers-table", h("thead", h("tr", ["entity", "selected by", "dropped because", "tokens"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", found.dropped.map((one) => h("tr", h("th", { scope: "row" }, h("code", one.key)), h("td", one.selection_reason), h("td", one.reason), h("td", one.tokens.toLocaleString("en"))))))),
    found.warnings.map((one) => h("p.problem", one.message)),
  ];
}
