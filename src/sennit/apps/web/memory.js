// Memory and graph: sessions and what was said, and facts around an entity, as of any day.

import { get, latest, once, post, query, remove } from "./api.js";
import { field, fill, h, localClock, localDay, plural, showDialog, storedTime, toast } from "./dom.js";
import { factsView, loadFacts } from "./facts.js";

export const title = "Memory";
const MANY_SESSIONS = 8;
const MAX_TURNS = 500;

export async function show(main, parameters, { caller, remember: keepAddress }) {
  const place = { session: parameters.get("session") ?? "", entity: parameters.get("entity") ?? "", asOf: parameters.get("as_of") ?? "" };
  const sessionList = h("ul.rows");
  const filter = h("input", { type: "search", placeholder: "Find a session", "aria-label": "Find a session", autocomplete: "off", spellcheck: "false" });
  const turns = h("ol.turns-list", { "aria-label": "Turns" });
  const graph = h("div");
  const listing = latest();
  const reading = latest();
  let sessions = [];
  const remember = (changes) => {
    Object.assign(place, changes);
    keepAddress({ session: place.session, entity: place.entity, as_of: place.asOf });
  };
  fill(
    main,
    h("h1", "Memory and graph"),
    h(
      "div.columns",
      h("section.card", { "aria-label": "Sessions" }, h("h2", "Sessions"), filter, sessionList, turns),
      h("section.card", { "aria-label": "Facts" }, h("h2", "Facts"), graph),
    ),
  );
  const loadSessions = async () => {
    const found = await listing((signal) => get("/v1/sessions", { signal }));
    if (!found) return;
    sessions = found.sessions;
    filter.hidden = sessions.length < MANY_SESSIONS;
    showSessions();
  };
  const showSessions = () => {
    const wanted = filter.value.trim().toLowerCase();
    const shown = sessions.filter((one) => one.name.toLowerCase().includes(wanted));
    fill(
      sessionList,
      shown.map((one) =>
        h(
          "li.row-line",
          h("button.row", { type: "button", "aria-pressed": String(one.name === place.session), onclick: () => loadTurns(one.name) }, h("strong", one.name), h("span.muted", plural(one.records, "turn"))),
          caller.write && h("button.plain.danger", { type: "button", "aria-label": `Forget the session ${one.name}`, onclick: () => forgetSession(one.name) }, "Forget"),
        ),
      ),
      !sessions.length && h("li.muted", "No conversations yet. ", h("code", "sennit index FILE --collection history"), " stores one, ", h("code", "sennit remember TEXT"), " a memory."),
      sessions.length > 0 && !shown.length && h("li.muted", "No session has this name."),
    );
  };
  const loadTurns = async (name) => {
    remember({ session: name });
    showSessions();
    const found = await reading((signal) => get(`/v1/records?${query({ filter: `session = ${JSON.stringify(name)}`, limit: MAX_TURNS })}`, { signal }));
    if (!found) return;
    const sorted = found.records.sort((a, b) => (Date.parse(a.timestamp) || 0) - (Date.parse(b.timestamp) || 0) || (a.position ?? 0) - (b.position ?? 0));
    let last = "";
    // Who has gone to another session while this one was changed stays there.
    const again = () => place.session === name && loadTurns(name);
    fill(
      turns,
      h("li", h("h3", name)),
      sorted.map((one) => {
        const time = one.timestamp && storedTime(one.timestamp);
        const date = time ? localDay(time) : "";
        const isNewDay = date && date !== last;
        last = date;
        return [
          isNewDay && h("li.day", h("time", { datetime: date }, date)),
          h(
            "li.turn",
            { "data-id": one.id },
            h("div", h("strong", one.metadata.speaker ?? one.kind), " ", date && h("time.muted", { datetime: one.timestamp }, localClock(time))),
            h("p", one.text),
            caller.write &&
              h(
                "div.row-actions",
                h("button.plain", { type: "button", onclick: () => correct(one, again) }, "Correct"),
                h("button.plain.danger", { type: "button", onclick: () => forget(one, again) }, "Forget"),
              ),
          ),
        ];
      }),
      found.total > sorted.length && h("li.muted", `The first ${sorted.length} of ${found.total} turns.`),
    );
  };
  const forgetSession = async (name) => {
    if (!(await ask(`Forget the session ${name}, and the facts that have no other source?`))) return;
    const { removed } = await remove(`/v1/sessions/${encodeURIComponent(name)}`);
    toast(`Forgot ${plural(removed, "record")}.`);
    if (place.session === name) {
      reading.cancel();
      fill(turns);
      remember({ session: "" });
    }
    await loadSessions();
  };
  filter.addEventListener("input", showSessions);
  await Promise.all([loadSessions(), showFacts(graph, { entity: place.entity, asOf: place.asOf }, caller, remember, latest())]);
  if (place.session) await loadTurns(place.session);
}

async function showFacts(graph, wanted, caller, onchange, reading) {
  const found = await reading((signal) => loadFacts(null, signal));
  if (!found) return;
  if (!found.facts.length) {
    fill(graph, h("p.muted", "No facts yet. ", h("code", "sennit facts add"), " stores one; a conversation gives them by ", h("code", "sennit facts extract"), "."));
    return;
  }
  const again = () => showFacts(graph, wanted, caller, onchange, reading);
  const view = factsView({
    ...found,
    ...wanted,
    onchange: (chosen) => {
      Object.assign(wanted, chosen);
      onchange(chosen);
    },
    actions: (fact, state) =>
      caller.write &&
      h(
        "div.row-actions",
        state === "valid" && h("button.plain", { type: "button", onclick: () => correctFact(fact, again) }, "Correct"),
        h("button.plain.danger", { type: "button", onclick: () => forget(fact.record, again) }, "Forget"),
      ),
  });
  fill(graph, view);
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

/** A dialog with a form. `save` writes; what goes wrong stands in the dialog. */
function edit(heading, label, control, save, done) {
  const problem = h("p.problem", { role: "alert" });
  const submit = once(async () => {
    try {
      toast(await save());
    } catch (error) {
      problem.textContent = error.message;
      return;
    }
    dialog.close();
    await done();
  });
  const form = h(
    "form.edit",
    {
      onsubmit: (event) => {
        event.preventDefault();
        submit();
      },
    },
    field(label, control),
    problem,
    h("button.primary", "Save"),
  );
  const dialog = showDialog(heading, form);
  control.focus();
}

function correct(record, done) {
  const text = h("textarea", { rows: 5, value: record.text });
  const save = async () => {
    const { citation, ...fields } = record;
    void citation;
    await post("/v1/records", { ...fields, text: text.value });
    return "Corrected.";
  };
  edit("Correct", "Text", text, save, done);
}

function correctFact(fact, done) {
  const object = h("input", { value: fact.object });
  const { id, collection, sensitivity, scope } = fact.record;
  const save = async () => {
    await post("/v1/facts", { subject: fact.subject, relation: fact.relation, object: object.value, timestamp: new Date().toISOString(), supersedes: [id], collection, sensitivity, scope });
    return "Corrected; the former fact stays in history.";
  };
  edit("Correct the fact", `${fact.subject} ${fact.relation}`, object, save, done);
}
