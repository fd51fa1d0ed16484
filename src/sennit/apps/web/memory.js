// Memory and graph: sessions and what was said, and facts around an entity, as of any day.

import { get, post, query, remove } from "./api.js";
import { debounce, field, fill, h, plural, showDialog, toast } from "./dom.js";

export const title = "Memory";
const IS_FACT = "exists subject and exists relation and exists object";
const MAX_FACTS = 1000;
const DAY = 86400000;

export async function show(main, parameters, caller) {
  const sessionList = h("ul.rows");
  const turns = h("ol.turns-list", { "aria-label": "Turns" });
  const graph = h("div.facts-view");
  fill(
    main,
    h("h1", "Memory and graph"),
    h("div.columns",
      h("section.card", { "aria-label": "Sessions" }, h("h2", "Sessions"), sessionList, turns),
      h("section.card", { "aria-label": "Facts" }, h("h2", "Facts"), graph)),
  );
  const loadSessions = async () => {
    const { sessions } = await get("/v1/sessions");
    fill(sessionList, sessions.length ? sessions.map((one) => h("li.row-line",
      h("button.row", { type: "button", onclick: () => loadTurns(one.name) }, h("strong", one.name), h("span.muted", plural(one.records, "turn"))),
      caller.write && h("button.plain.danger", { type: "button", "aria-label": `Forget the session ${one.name}`, onclick: () => forgetSession(one.name) }, "Forget"))) : h("li.muted", "No conversations."));
  };
  const loadTurns = async (name) => {
    const found = await get(`/v1/records?${query({ filter: `session = ${JSON.stringify(name)}`, limit: 500 })}`);
    const sorted = found.records.sort((a, b) => (a.position ?? 0) - (b.position ?? 0));
    fill(turns, h("li", h("h3", name)), sorted.map((one) => h("li.turn", h("div", h("strong", one.metadata.speaker ?? one.kind), " ", h("time.muted", { datetime: one.timestamp ?? "" }, (one.timestamp ?? "").slice(0, 16).replace("T", " "))), h("p", one.text), caller.write && h("div", h("button.plain", { type: "button", onclick: () => correct(one, () => loadTurns(name)) }, "Correct"), h("button.plain.danger", { type: "button", onclick: () => forget(one, () => loadTurns(name)) }, "Forget")))));
  };
  const forgetSession = async (name) => {
    if (!(await ask(`Forget the session ${name}, and the facts that have no other source?`))) return;
    const { removed } = await remove(`/v1/sessions/${encodeURIComponent(name)}`);
    toast(`Forgot ${plural(removed, "record")}.`);
    fill(turns);
    await loadSessions();
  };
  await Promise.all([loadSessions(), showFacts(graph, parameters.get("entity") ?? "", caller)]);
}

async function showFacts(graph, entity, caller) {
  const found = await get(`/v1/records?${query({ filter: IS_FACT, limit: MAX_FACTS })}`);
  const facts = found.records.map((record) => ({
    record,
    subject: record.metadata.subject,
    relation: record.metadata.relation,
    object: record.metadata.object,
    from: record.timestamp ? Date.parse(record.timestamp) : null,
    until: record.metadata.superseded_at ? Date.parse(record.metadata.superseded_at) : null,
  }));
  if (!facts.length) {
    fill(graph, h("p.muted", "No facts."));
    return;
  }
  const times = facts.flatMap((fact) => [fact.from, fact.until]).filter((time) => time !== null);
  const now = Math.max(Date.now(), ...times);
  const first = Math.min(now - 30 * DAY, ...times) - DAY;
  const slider = h("input", { type: "range", min: 0, max: Math.ceil((now - first) / DAY), value: Math.ceil((now - first) / DAY) });
  const shown = h("span");
  const names = [...new Set(facts.flatMap((fact) => [fact.subject, fact.object]))].sort();
  const picker = h("input", { value: entity, list: "entities", placeholder: "all", autocomplete: "off" });
  const list = h("ul.facts-list");
  const count = h("p.muted", { role: "status" });
  const draw = () => {
    const at = first + Number(slider.value) * DAY;
    shown.textContent = new Date(at).toISOString().slice(0, 10);
    const near = around(facts, picker.value.trim());
    const states = near.map((fact) => ({ fact, state: fact.from !== null && fact.from > at ? "future" : fact.until !== null && fact.until <= at ? "ended" : "valid" })).filter(({ state }) => state !== "future");
    count.textContent = `${plural(states.filter(({ state }) => state === "valid").length, "fact")} valid on ${shown.textContent}, ${states.filter(({ state }) => state === "ended").length} superseded.`;
    fill(list, states.sort((a, b) => a.fact.subject.localeCompare(b.fact.subject) || a.fact.relation.localeCompare(b.fact.relation)).map(({ fact, state }) => factLine(fact, state)));
  };
  const successor = (fact) => facts.find((other) => other !== fact && ([].concat(other.record.metadata.supersedes ?? []).includes(fact.record.id) || (other.subject === fact.subject && other.relation === fact.relation && other.from !== null && other.from === fact.until)));
  const factLine = (fact, state) => {
    const next = state === "ended" ? successor(fact) : null;
    const name = (text) => h("button.entity", { type: "button", onclick: () => { picker.value = text; draw(); picker.focus(); } }, text);
    return h(`li.fact.${state}`,
      h("div.triple", name(fact.subject), h("span.relation", fact.relation), name(fact.object)),
      h("p.muted", [fact.from ? `from ${new Date(fact.from).toISOString().slice(0, 10)}` : "always", fact.until ? ` until ${new Date(fact.until).toISOString().slice(0, 10)}` : "", next ? `, superseded by “${next.subject} ${next.relation} ${next.object}”` : ""].join("")),
      caller.write && h("div", state === "valid" && h("button.plain", { type: "button", onclick: () => correctFact(fact, () => showFacts(graph, picker.value, caller)) }, "Correct"), h("button.plain.danger", { type: "button", onclick: () => forget(fact.record, () => showFacts(graph, picker.value, caller)) }, "Forget")));
  };
  slider.addEventListener("input", draw);
  picker.addEventListener("input", debounce(draw, 80));
  fill(graph, h("div.around", field("Around", picker), h("label.field", h("span.label", "As of ", shown), slider)), h("datalist#entities", names.map((name) => h("option", { value: name }))), count, list);
  draw();
}

/** The facts about an entity, and those about what they name: two steps. */
function around(facts, name) {
  if (!name) return facts;
  const near = new Set([name]);
  for (const fact of facts) if (fact.subject === name || fact.object === name) near.add(fact.subject).add(fact.object);
  return near.size > 1 ? facts.filter((fact) => near.has(fact.subject) || near.has(fact.object)) : facts.filter((fact) => `${fact.subject} ${fact.object}`.toLowerCase().includes(name.toLowerCase()));
}

function ask(question) {
  return new Promise((resolve) => {
    let answer = false;
    const dialog = showDialog("Please confirm", h("p", question), h("p", h("button.primary", { type: "button", onclick: () => { answer = true; dialog.close(); } }, "Yes, forget")));
    dialog.addEventListener("close", () => resolve(answer));
  });
}

async function forget(record, done) {
  if (!(await ask(`Forget “${record.text.slice(0, 120)}”?`))) return;
  await remove(`/v1/records/${encodeURIComponent(record.id)}`);
  toast("Forgotten.");
  await done();
}

function correct(record, done) {
  const text = h("textarea", { rows: 5, value: record.text });
  const form = h("form", { onsubmit: async (event) => {
    event.preventDefault();
    const { citation, ...fields } = record;
    void citation;
    await post("/v1/records", { ...fields, text: text.value });
    dialog.close();
    toast("Corrected.");
    await done();
  } }, field("Text", text), h("button.primary", "Save"));
  const dialog = showDialog("Correct", form);
}

function correctFact(fact, done) {
  const object = h("input", { value: fact.object });
  const form = h("form.inline", { onsubmit: async (event) => {
    event.preventDefault();
    await post("/v1/facts", { subject: fact.subject, relation: fact.relation, object: object.value, timestamp: new Date().toISOString(), supersedes: [fact.record.id], collection: fact.record.collection, sensitivity: fact.record.sensitivity, scope: fact.record.scope });
    dialog.close();
    toast("Corrected; the former fact stays in history.");
    await done();
  } }, field(`${fact.subject} ${fact.relation}`, object), h("button.primary", "Save"));
  const dialog = showDialog("Correct the fact", form);
}
