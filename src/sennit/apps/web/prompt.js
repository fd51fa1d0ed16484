// What enters the prompt: the memory block, or the plan of code within its budget, and the episodes over time.

import { get, latest, once, post, query } from "./api.js";
import { copyText, field, fill, h, localClock, localDay, plural } from "./dom.js";
import { loadProjects, projectField } from "./project.js";

export const title = "Prompt";
const DEFAULT_TOKENS = 4000;

export async function show(main, parameters, { caller, remember: keepAddress }) {
  const place = {
    q: parameters.get("q") ?? "",
    kind: parameters.get("kind") === "plan" ? "plan" : "context",
    budget: Number(parameters.get("budget")) || DEFAULT_TOKENS,
    episode: parameters.get("episode") ?? "",
    turn: Number(parameters.get("turn")) || 0,
    project: parameters.get("project") ?? "",
  };
  const projects = await loadProjects();
  const box = h("textarea", { rows: 2, placeholder: "A task or a question", spellcheck: "false", value: place.q });
  const kind = h("select", h("option", { value: "context" }, "memory block"), h("option", { value: "plan" }, "code plan"));
  kind.value = place.kind;
  const budget = h("input", { type: "number", min: 1, max: 1000000, value: place.budget });
  const episode = h("input", { spellcheck: "false", placeholder: caller.write ? "none: the plan is not stored" : "needs write access", disabled: !caller.write });
  const planFields = [field("Budget in tokens", budget), field("Store in the episode", episode)];
  const out = h("div.cards.single", { "aria-live": "polite" });
  const list = h("ul.episodes");
  const turns = h("div.cards.single");
  const showing = latest();
  const listing = latest();
  const inspecting = latest();

  const remember = () => keepAddress({ q: place.q, kind: place.kind === "plan" ? "plan" : "", budget: place.budget === DEFAULT_TOKENS ? "" : place.budget, episode: place.episode, turn: place.turn || "", project: place.project });
  const showFields = () => {
    for (const one of planFields) one.hidden = kind.value !== "plan";
  };
  const run = async () => {
    place.q = box.value.trim();
    place.kind = kind.value;
    place.budget = Number(budget.value) || DEFAULT_TOKENS;
    remember();
    if (!place.q) return;
    const name = place.kind === "plan" ? episode.value.trim() : "";
    fill(out, h("p.muted", place.kind === "plan" ? "Planning …" : "Reading …"));
    try {
      const shown = await showing((signal) => (place.kind === "plan" ? codePlan(place, name, signal) : memoryBlock(place, signal)));
      if (shown) fill(out, shown);
      if (name) await loadEpisodes();
    } catch (error) {
      fill(out, h("p.problem", error.message));
    }
  };

  /** A plan that is stored becomes a turn, so that a second click must not store another one. */
  const runOnce = once(run);

  const loadEpisodes = async () => {
    const found = await listing((signal) => get("/v1/episodes", { signal }));
    if (!found) return;
    const { episodes } = found;
    fill(
      list,
      episodes.map((one) => episodeRow(one, (turn) => inspect(one.episode_id, turn))),
      !episodes.length && h("li.muted", "No episodes yet. A code plan that names one is stored there, turn by turn: above, or by ", h("code", "sennit plan TASK --episode NAME"), "."),
    );
    markTurn();
  };
  const markTurn = () => {
    for (const button of list.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.episode === place.episode && Number(button.dataset.turn) === place.turn));
  };
  const inspect = async (name, turn) => {
    try {
      const found = await inspecting((signal) => get(`/introspect/hydration/${encodeURIComponent(name)}?${query({ turn })}`, { signal }));
      if (!found) return;
      Object.assign(place, { episode: name, turn: found.turn });
      remember();
      markTurn();
      fill(
        turns,
        plan(
          {
            ...found,
            tokens: found.token_count,
            entries: found.entities.map((one) => ({ ...one, key: one.entity_key, tokens: one.token_count, preview: one.content })),
            dropped: found.dropped.map((one) => ({ ...one, key: one.entity_key, tokens: one.token_count })),
          },
          `${name}, turn ${found.turn}`,
        ),
      );
    } catch (error) {
      fill(turns, h("p.problem", error.message));
    }
  };

  kind.addEventListener("change", showFields);
  showFields();
  fill(
    main,
    h("h1", "What enters the prompt"),
    h(
      "form.request.card",
      { onsubmit: (event) => { event.preventDefault(); if (episode.value.trim()) runOnce(); else run(); } },
      field("Task", box),
      h("div.options.two", field("What", kind), projectField(projects, place.project, (name) => { place.project = name; run(); }), planFields),
      h("div", h("button.primary", "Show")),
    ),
    out,
    h("section.card", { "aria-label": "Episodes" }, h("h2", "Episodes"), h("p.muted", "What each turn of an episode put into the prompt: a bar is a turn, its height the share of the budget. Choose one to see its plan."), list, turns),
  );
  await loadEpisodes();
  if (place.q) await run();
  if (place.episode) await inspect(place.episode, place.turn || undefined);
}

async function codePlan({ q, budget, project }, episode, signal) {
  return plan(await post("/v1/plan", { query: q, max_tokens: budget, ...(episode ? { episode } : {}), ...(project ? { project } : {}) }, { signal }));
}

function episodeRow(episode, onchoose) {
  const last = episode.turns.at(-1);
  return h(
    "li.episode",
    h("div.episode-name", h("strong", episode.episode_id), h("span.muted", `${plural(episode.turns.length, "turn")}, last `, h("time", { datetime: last.created }, `${localDay(last.created)} ${localClock(last.created)}`))),
    h(
      "div.turn-bars",
      { role: "group", "aria-label": `Turns of ${episode.episode_id}` },
      episode.turns.map((one) => {
        const share = Math.min(1, one.tokens / one.max_tokens);
        const all = Math.max(1, one.anchors + one.semantic);
        const label = `turn ${one.turn}: ${one.query}. ${one.tokens.toLocaleString("en")} of ${one.max_tokens.toLocaleString("en")} tokens, ${one.anchors} named, ${one.semantic} by meaning, ${one.dropped} cut`;
        return h(
          "button.turn-bar",
          { type: "button", title: label, "aria-label": label, "aria-pressed": "false", "data-episode": episode.episode_id, "data-turn": one.turn, onclick: () => onchoose(one.turn) },
          h("span.turn-fill", { style: { height: `${Math.max(6, 100 * share)}%` } }, h("span.anchor", { style: { "flex-grow": String(one.anchors / all) } }), h("span.semantic", { style: { "flex-grow": String(one.semantic / all) } })),
          h("span.turn-number", one.turn),
        );
      }),
    ),
  );
}

async function memoryBlock({ q, project }, signal) {
  const { block, results, max_characters: most } = await get(`/v1/context?${query({ query: q, project, provenance: "true" })}`, { signal });
  if (!results.length) return h("section.card", { "aria-label": "Block" }, h("h2", "Memory block"), h("p.muted", "Nothing is remembered about that."));
  const kept = results.filter((one) => one.in_block);
  const cut = results.filter((one) => !one.in_block);
  const isFact = (one) => one.kind === "fact";
  const frame = block.length - kept.reduce((sum, one) => sum + one.characters, 0);
  const name = (one) => [h(isFact(one) ? "span.dot.anchor" : "span.dot.semantic"), one.speaker && h("strong", `${one.speaker}: `), one.text, one.shortened && h("span.badge", "shortened")];
  const row = (one) => [name(one), one.source_session ?? one.citation, `${Math.round(100 * one.relevance)} %`, one.characters.toLocaleString("en")];
  const heads = ["memory", "source", "relevance", "characters"];
  return [
    h(
      "section.card",
      { "aria-label": "Block" },
      h("div.bar", h("h2", "Memory block"), h("button", { type: "button", onclick: () => copyText(block, "the block") }, "Copy")),
      budgetBar(block.length, most, `characters (about ${plural(Math.ceil(block.length / 4), "token")})`, [
        { class: "frame", size: frame, text: "the words around the memories" },
        ...kept.map((one) => ({ class: isFact(one) ? "anchor" : "semantic", size: one.characters, text: one.text })),
      ]),
      h("ul.legend", h("li", h("span.dot.semantic"), "said"), h("li", h("span.dot.anchor"), "facts"), h("li", h("span.dot.frame"), "the frame")),
      h("pre.output", { tabindex: "0", "aria-label": "Memory block" }, block),
      h("h3", plural(kept.length, "memory", "memories")),
      table(heads, kept.map(row)),
    ),
    cut.length > 0 && h("section.card", { "aria-label": "Cut from the block" }, h("h2", "What the budget cut"), h("p.muted", "The first of them did not fit; what follows is less relevant."), table(heads, cut.map(row))),
  ];
}

/** A budget as a bar: filled with what is used, a piece for each entry. */
function budgetBar(used, most, unit, pieces) {
  const share = Math.floor((100 * used) / most);
  return [
    h("p", h("strong", used.toLocaleString("en")), ` of ${most.toLocaleString("en")} `, h("span.muted", unit), `, ${share} %`),
    h(
      "div.budget",
      { role: "img", "aria-label": `${share} % of the budget` },
      pieces.map((piece) => h(`span.${piece.class}`, { title: `${piece.text.slice(0, 200)}: ${piece.size.toLocaleString("en")}`, style: { width: `${(100 * piece.size) / most}%` } })),
    ),
  ];
}

function plan(found, name = "Plan") {
  const isAnchor = (entry) => entry.reason.startsWith("anchor:");
  const reason = (text) => text.replace(/^anchor:/, "").replaceAll("_", " ");
  return [
    h(
      "section.card",
      { "aria-label": name },
      h("div.bar", h("h2", name), found.prompt && h("button", { type: "button", onclick: () => copyText(found.prompt, "the block") }, "Copy")),
      found.query && found.turn > 0 && h("p", "“", found.query, "”", found.project?.length > 0 && h("span.muted", ` in ${found.project.join(", ")}`)),
      budgetBar(found.tokens, found.max_tokens, `tokens (${found.tokenizer})`, found.entries.map((entry) => ({ class: isAnchor(entry) ? "anchor" : "semantic", size: entry.tokens, text: entry.key }))),
      h("ul.legend", h("li", h("span.dot.anchor"), "named (anchors)"), h("li", h("span.dot.semantic"), "by meaning")),
      found.entries.length
        ? table(
            ["entity", "why", "tokens"],
            found.entries.map((entry) => [
              [h(isAnchor(entry) ? "span.dot.anchor" : "span.dot.semantic"), h("code", entry.key), entry.partial && h("span.badge", "shortened")],
              reason(entry.reason),
              entry.tokens.toLocaleString("en"),
            ]),
          )
        : h("p.muted", "No code belongs to this task. ", h("code", "sennit index FOLDER"), " adds the code of a folder."),
    ),
    found.dropped.length > 0 &&
      h(
        "section.card",
        { "aria-label": `Cut from ${name}` },
        h("h2", "What the budget cut"),
        table(
          ["entity", "selected by", "dropped because", "tokens"],
          found.dropped.map((one) => [h("code", one.key), reason(one.selection_reason), one.reason, one.tokens.toLocaleString("en")]),
        ),
      ),
    found.warnings.length > 0 && h("div.card.warnings", found.warnings.map((one) => h("p.problem", one.message))),
  ];
}

/** A table whose rows are cards on a phone: each cell says which column it is of. */
function table(heads, rows) {
  return h(
    "table.numbers-table",
    h("thead", h("tr", heads.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", rows.map(([first, ...cells]) => h("tr", h("th", { scope: "row" }, first), cells.map((cell, at) => h("td", { "data-head": heads[at + 1] }, cell))))),
  );
}
