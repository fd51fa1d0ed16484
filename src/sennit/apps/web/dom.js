// Small helpers to build the page. Text is only ever set as text: nothing here can create markup from a string.

export const DAY_MILLISECONDS = 86400000;

/** Make an element: h("p.muted#about", {title: "…", onclick: f}, "text", child, …). */
export function h(selector, ...rest) {
  const [, tag, more] = /^([a-z0-9]*)(.*)$/.exec(selector);
  const element = document.createElement(tag || "div");
  for (const [, sign, name] of more.matchAll(/([.#])([\w-]+)/g)) {
    if (sign === ".") element.classList.add(name);
    else element.id = name;
  }
  const hasProperties = rest.length && isProperties(rest[0]);
  if (hasProperties) setProperties(element, rest[0]);
  append(element, hasProperties ? rest.slice(1) : rest);
  return element;
}

function isProperties(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Node);
}

function setProperties(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** Make an element of a drawing. */
export function svg(tag, properties, ...children) {
  const element = document.createElementNS(SVG, tag);
  setProperties(element, properties);
  return append(element, children);
}

/**
 * Replace the children of an element. The focus, and what is typed there, goes to the new child that stands for the
 * same: an answer that comes late must not take either from a person.
 */
export function fill(element, ...children) {
  const focused = element.contains(document.activeElement) && element !== document.activeElement ? document.activeElement : null;
  const at = focused ? [...element.querySelectorAll(focused.localName)].indexOf(focused) : -1;
  element.replaceChildren();
  append(element, children);
  if (focused) restoreFocus(element, focused, at);
  return element;
}

function restoreFocus(element, focused, at) {
  const alike = [...element.querySelectorAll(focused.localName)];
  const name = nameOf(focused);
  const next = alike.find((one) => one === focused) ?? alike.find((one) => nameOf(one) === name) ?? alike[Math.min(at, alike.length - 1)];
  if (!next) return;
  if (next !== focused && isTyped(next) && nameOf(next) === name) {
    next.value = focused.value;
    next.setSelectionRange(focused.selectionStart, focused.selectionEnd);
  }
  next.focus({ preventScroll: true });
}

const isTyped = (element) => element.matches("textarea, input:is([type=search], [type=text], :not([type]))");

/** What tells an element from others of its kind: the record it is of, and its name. */
function nameOf(element) {
  if (element.dataset.id) return element.dataset.id;
  const label = element.getAttribute("aria-label") ?? (element.labels?.[0] ?? element).textContent;
  return `${element.closest("[data-id]")?.dataset.id ?? ""} ${label}`;
}

/** Tell a screen reader. */
export function announce(text) {
  document.getElementById("announce").textContent = text;
}

export async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const focused = document.activeElement;
    const area = h("textarea.quiet", { value: text, "aria-hidden": "true" });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    focused?.focus();
  }
  toast(`Copied ${what}.`);
}

let toastTimer;
export function toast(text) {
  document.querySelector(".toast")?.remove();
  document.body.append(h("div.toast", { "aria-hidden": "true" }, text));
  announce(text);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => document.querySelector(".toast")?.remove(), 2600);
}

/** Save a text as a file of the user. */
export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/octet-stream" }));
  h("a", { href: url, download: name }).click();
  // A busy machine begins the download late.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A modal dialog with a title; Escape and the button close it, and the browser returns the focus. */
export function showDialog(title, ...content) {
  const dialog = h("dialog", { "aria-labelledby": "dialog-title" });
  const close = h("button.plain", { type: "button", onclick: () => dialog.close() }, "Close");
  append(dialog, [
    h("header", h("h2#dialog-title", title), close),
    h("div.dialog-body", { tabindex: "0", role: "region", "aria-label": title }, content),
  ]);
  // The event comes after the browser has returned the focus: to set it here would take it from whoever has it since.
  dialog.addEventListener("close", () => dialog.remove());
  // Not the second click of a double click, whose first one opened the dialog.
  dialog.addEventListener("click", (event) => event.target === dialog && event.detail < 2 && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A menu that Escape, and a click or a focus elsewhere, close. */
export function menu(summary, items) {
  const details = h("details.menu", summary, items);
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    details.open = false;
    summary.focus();
  });
  details.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !details.contains(event.relatedTarget)) details.open = false;
  });
  const close = (event) => !details.contains(event.target) && (details.open = false);
  details.addEventListener("toggle", () => {
    if (details.open) document.addEventListener("pointerdown", close);
    else document.removeEventListener("pointerdown", close);
  });
  return details;
}

/** Tabs with arrow keys. `tabs` is a list of {id, label, panel}. */
export function tabs(label, entries, onchange) {
  const list = h("div.tabs", { role: "tablist", "aria-label": label });
  let current = entries[0].id;
  const select = (id, focus = false) => {
    for (const entry of entries) {
      const chosen = entry.id === id;
      entry.tab.setAttribute("aria-selected", chosen);
      entry.tab.tabIndex = chosen ? 0 : -1;
      entry.panel.hidden = !chosen;
      if (chosen && focus) entry.tab.focus();
    }
    if (id !== current) onchange?.(id);
    current = id;
  };
  entries.forEach((entry, at) => {
    entry.panel.id = `panel-${entry.id}`;
    entry.panel.setAttribute("role", "tabpanel");
    entry.panel.setAttribute("aria-labelledby", `tab-${entry.id}`);
    entry.tab = h(
      `button#tab-${entry.id}`,
      {
        type: "button",
        role: "tab",
        "aria-controls": entry.panel.id,
        onclick: () => select(entry.id),
        onkeydown: (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!step) return;
          event.preventDefault();
          select(entries[(at + step + entries.length) % entries.length].id, true);
        },
      },
      entry.label,
    );
    list.append(entry.tab);
  });
  select(entries[0].id);
  return { list, select };
}

const SOURCE_COLOURS = ["keyword", "vector", "graph", "links", "grep", "recent"];

/** The class with the colour of a source; a list of one collection ("keyword:notes") has that of its source. */
export function sourceClass(name) {
  const base = name.replace(/^outline_/, "").split(":")[0];
  const known = SOURCE_COLOURS.indexOf(base);
  if (known >= 0) return `source-${known}`;
  let hash = 0;
  for (const character of name) hash = (hash * 31 + character.codePointAt(0)) % 997;
  return `source-${hash % SOURCE_COLOURS.length}`;
}

export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(digits)));
}

export function milliseconds(value) {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

/** A stored time. Midnight in UTC stands for a day without a time of day, which begins at midnight here too. */
export function storedTime(text) {
  const date = new Date(text);
  if (date.getTime() % DAY_MILLISECONDS) return date.getTime();
  return new Date(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()).getTime();
}

/** The day of a time here, where the person is: 2026-03-01. */
export function localDay(time) {
  const date = new Date(time);
  return [String(date.getFullYear()).padStart(4, "0"), String(date.getMonth() + 1).padStart(2, "0"), String(date.getDate()).padStart(2, "0")].join("-");
}

/** The time of day here: 18:05. */
export function localClock(time) {
  return new Date(time).toTimeString().slice(0, 5);
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

export function debounce(work, wait) {
  let timer;
  const later = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), wait);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

export function field(label, control, hint) {
  return h("label.field", h("span.label", label), control, hint && h("span.hint", hint));
}
