// The OpenAPI document as a page: every route with its parameters, body and responses, and a form to try it.

import { latest, session, storage } from "./api.js";
import { announce, fill, h } from "./dom.js";

document.documentElement.dataset.theme = storage("localStorage").getItem("sennit.theme") ?? "auto";
const main = document.getElementById("main");
const api = await (await fetch("/openapi.json", { credentials: "omit" })).json();

const resolve = (schema) => (schema?.$ref ? api.components.schemas[schema.$ref.split("/").at(-1)] : schema);

function typeName(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(typeName).join(" or ");
  if (schema.oneOf) return schema.oneOf.map(typeName).join(" or ");
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `list of ${typeName(schema.items) || "values"}`;
  return schema.type ?? "any";
}

function properties(schema) {
  const found = resolve(schema);
  if (!found?.properties) return h("p.muted", typeName(schema));
  const required = new Set(found.required ?? []);
  return h(
    "table.numbers-table",
    h("thead", h("tr", ["field", "type", "about"].map((name) => h("th", { scope: "col" }, name)))),
    h(
      "tbody",
      Object.entries(found.properties).map(([name, one]) =>
        h("tr", h("th", { scope: "row" }, h("code", name), required.has(name) && h("span.bad", { title: "required" }, " *")), h("td", typeName(one)), h("td", one.description ?? "")),
      ),
    ),
  );
}

function operation(path, method, one) {
  const id = `${method}-${path}`.replace(/[^a-z0-9]+/gi, "-");
  const body = one.requestBody?.content?.["application/json"]?.schema;
  const success = one.responses["200"]?.content?.["application/json"]?.schema;
  return h(
    "details.operation.card",
    h("summary", h(`span.method.${method}`, method.toUpperCase()), h("code", path), h("span.muted", one.summary ?? "")),
    h("p", one.description ?? ""),
    one.parameters?.length
      ? [
          h("h3", "Parameters"),
          h(
            "table.numbers-table",
            h("thead", h("tr", ["name", "in", "type", "about"].map((name) => h("th", { scope: "col" }, name)))),
            h(
              "tbody",
              one.parameters.map((parameter) =>
                h("tr", h("th", { scope: "row" }, h("code", parameter.name), parameter.required && h("span.bad", { title: "required" }, " *")), h("td", parameter.in), h("td", typeName(parameter.schema)), h("td", parameter.description ?? parameter.schema?.description ?? "")),
              ),
            ),
          ),
        ]
      : null,
    body && [h("h3", "Body"), properties(body)],
    success && [h("h3", "Response"), properties(success)],
    tryIt(id, path, method, one, body),
  );
}

async function send(target, options) {
  const response = await fetch(target, options);
  const text = await response.text();
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Not JSON: shown as it is.
  }
  return { status: response.status, text: `${response.status}\n${shown.slice(0, 20000)}` };
}

function tryIt(id, path, method, one, body) {
  const inputs = (one.parameters ?? []).map((parameter) => ({ parameter, input: h("input", { spellcheck: "false" }) }));
  const example = resolve(body)?.examples?.[0];
  const area = body && h("textarea", { rows: 4, spellcheck: "false", value: example ? JSON.stringify(example, null, 2) : "{}" });
  const output = h("pre.output", { tabindex: "0", hidden: true, "aria-label": "Response" });
  const ask = latest();
  const submit = async (event) => {
    event.preventDefault();
    let address = path;
    const parameters = new URLSearchParams();
    for (const { parameter, input } of inputs) {
      if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
      else if (input.value) parameters.append(parameter.name, input.value);
    }
    const headers = session.token ? { authorization: `Bearer ${session.token}` } : {};
    if (area) headers["content-type"] = "application/json";
    const target = parameters.size ? `${address}?${parameters}` : address;
    let found;
    try {
      found = await ask((signal) => send(target, { method: method.toUpperCase(), headers, body: area?.value, credentials: "omit", signal }));
    } catch {
      found = { text: "The service does not answer. Is it still running?" };
    }
    if (!found) return;
    output.hidden = false;
    output.textContent = found.text;
    announce(found.status ? `The service answered ${found.status}.` : found.text);
  };
  return h(
    "form.try",
    { onsubmit: submit, "aria-label": `Try ${method} ${path}` },
    h("h3", "Try it"),
    h("div.inline", inputs.map(({ parameter, input }) => h("label.field", h("span.label", parameter.name), input))),
    area && h("label.field", h("span.label", "Body"), area),
    h("button.primary", "Send"),
    output,
  );
}

const groups = new Map(api.tags.map((tag) => [tag.name, { about: tag.description, operations: [] }]));
for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, one] of Object.entries(methods)) groups.get(one.tags[0])?.operations.push(operation(path, method, one));
}
fill(
  main,
  h("h1", `sennit API ${api.info.version}`),
  h("p.muted.about", api.info.description.split("\n\n")[0]),
  !session.token && h("p.hint-box", "To try routes, sign in on the ", h("a", { href: "/" }, "page"), " first, in this tab."),
  [...groups].map(([name, { about, operations }]) => h("section.group", h("h2", name), h("p.muted", about), operations)),
  h("p", h("a", { href: "/openapi.json" }, "openapi.json")),
);
