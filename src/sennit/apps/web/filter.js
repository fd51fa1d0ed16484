// The filter box: completes fields, operators and values of what the caller may see.

import { get, latest, query } from "./api.js";
import { fill, h } from "./dom.js";

const OPERATORS = ["=", "!=", ">=", "<=", "in", "like", "contains", "starts_with", "exists"];
const JOINERS = ["and", "or"];
const MAX_COMPLETIONS = 12;

/** What is being written at the end of a filter: a field, an operator, a value, or a joining word. */
export function position(text) {
  const parts = [...text.matchAll(/"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?|[()]|[<>=!]+|[^\s"'`()<>=!]+/g)];
  const last = parts.at(-1);
  const isOpen = last && !/\s$/.test(text);
  const word = isOpen ? last[0] : "";
  const done = (isOpen ? parts.slice(0, -1) : parts).map(([part]) => part).filter((part) => part !== "(");
  let state = "field";
  let name = "";
  for (const part of done) {
    if (part === ")") state = "joiner";
    else if (state === "field") {
      if (part.toLowerCase() === "not" || part.toLowerCase() === "exists") continue;
      name = part;
      state = "operator";
    } else if (state === "operator") state = "value";
    else if (state === "value") state = "joiner";
    else state = "field";
  }
  return { state, word, name, start: text.length - word.length };
}

/** Whether a filter can be parsed so far: it is empty, or ends with a whole condition. */
export function isComplete(text) {
  if (!text.trim()) return true;
  const quoted = text.replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`/g, "x");
  const open = (quoted.match(/\(/g) ?? []).length - (quoted.match(/\)/g) ?? []).length;
  return !/["'`]/.test(quoted) && open === 0 && (position(`${text} `).state === "joiner" || /\bexists\s+\S+\s*$/.test(text));
}

export function filterBox(value, onchange) {
  const input = h("input", {
    value,
    role: "combobox",
    "aria-expanded": "false",
    "aria-controls": "filter-list",
    "aria-autocomplete": "list",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "kind = \"note\" and path like \"docs/*\"",
  });
  const list = h("ul.completions#filter-list", { role: "listbox", "aria-label": "Completions", hidden: true });
  const ask = latest();
  let chosen = -1;

  const close = () => {
    // What was asked before must not open the list again.
    ask.cancel();
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    chosen = -1;
  };
  const accept = (text) => {
    const { start } = position(input.value);
    input.value = `${input.value.slice(0, start)}${text} `;
    close();
    input.focus();
    onchange(input.value);
    suggest();
  };
  const select = (at) => {
    const items = [...list.children];
    if (!items.length) return;
    chosen = (at + items.length) % items.length;
    items.forEach((item, index) => item.setAttribute("aria-selected", index === chosen));
    input.setAttribute("aria-activedescendant", items[chosen].id);
    items[chosen].scrollIntoView({ block: "nearest" });
  };
  const complete = async ({ state, word, name }, signal) => {
    if (state === "operator") return OPERATORS.filter((one) => one.startsWith(word)).map((text) => ({ text }));
    if (state === "joiner") return JOINERS.filter((one) => one.startsWith(word)).map((text) => ({ text }));
    const prefix = state === "value" ? word.replace(/^["']/, "") : word;
    const answer = await get(`/v1/fields?${query({ name: state === "value" ? name : "", prefix })}`, { signal });
    if (state === "value") return answer.values.map((one) => ({ text: JSON.stringify(one.name), count: one.records }));
    return answer.fields.map((text) => ({ text }));
  };
  const suggest = async () => {
    const found = (await ask((signal) => complete(position(input.value), signal)).catch(() => []))?.slice(0, MAX_COMPLETIONS);
    if (!found || document.activeElement !== input) return;
    const before = list.children[chosen]?.firstChild.textContent;
    fill(
      list,
      found.map(({ text, count }, at) =>
        h(`li#filter-option-${at}`, { role: "option", "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); accept(text); } }, h("span", text), count !== undefined && h("span.muted", count.toLocaleString("en"))),
      ),
    );
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", String(found.length > 0));
    input.removeAttribute("aria-activedescendant");
    // A list that comes late keeps what was chosen from the one before.
    chosen = found.findIndex(({ text }) => text === before);
    if (chosen >= 0) select(chosen);
  };
  input.addEventListener("input", () => {
    onchange(input.value);
    suggest();
  });
  input.addEventListener("focus", suggest);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) suggest();
      else select(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) {
      event.preventDefault();
      accept(list.children[chosen].querySelector("span").textContent);
    } else if (event.key === "Escape") {
      if (!list.hidden) event.preventDefault();
      close();
    }
  });
  return { input, element: h("div.filter", input, list) };
}
