// A search in other forms: what a person would paste into a terminal, a program or an assistant's settings.

import { get, query } from "./api.js";
import { copyText, h, menu, toast } from "./dom.js";

/** The body of POST /v1/search, without what is not set. */
export function searchBody(request, extra = {}) {
  const body = { query: request.q };
  if (request.recipe) body.recipe = request.recipe;
  if (request.limit) body.limit = request.limit;
  if (request.filter) body.filters = request.filter;
  if (request.collections.length) body.collections = request.collections;
  if (request.project) body.project = request.project;
  return { ...body, ...extra };
}

const quoteShell = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

export function asCurl(request) {
  const body = JSON.stringify(searchBody(request));
  return `curl -H "Authorization: Bearer $SENNIT_TOKEN" -H 'Content-Type: application/json' -d ${quoteShell(body)} ${location.origin}/v1/search`;
}

/** JSON of a text is also a literal of Python, once lone surrogates are escaped. */
const python = (value) => (Array.isArray(value) ? `[${value.map(python).join(", ")}]` : JSON.stringify(value));

export function asPython(request) {
  const { query: text, filters, ...options } = searchBody(request);
  const named = Object.entries({ ...options, ...(filters ? { filters } : {}) }).map(([name, value]) => `${name}=${python(value)}`);
  return `import sennit\n\nwith sennit.open() as db:\n    for hit in db.search(${[python(text), ...named].join(", ")}):\n        print(hit.rank, hit.relevance, hit.citation, hit.text)\n`;
}

/** The tool takes filters as an object, and collections as one of them; the engine has put them into that form. */
export function asMcp(request, answer) {
  const { query: text, recipe, limit, project } = searchBody(request);
  const filters = answer?.trace?.filters ?? {};
  const body = { query: text, ...(recipe ? { recipe } : {}), ...(limit ? { limit } : {}), ...(project ? { project } : {}), ...(Object.keys(filters).length ? { filters } : {}) };
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "hybrid_search", arguments: body } }, null, 2);
}

/** A menu of forms to copy. */
export function copyMenu(current) {
  const forms = {
    "prompt block": async ({ request, answer }) => {
      const block = await get(`/v1/context?${query({ query: request.q, recipe: answer.recipe, limit: request.limit || undefined, filter: request.filter, collection: request.collections, project: request.project, format: "prompt", provenance: "true" })}`);
      return block || "(nothing found)";
    },
    JSON: async ({ answer }) => JSON.stringify(answer, null, 2),
    curl: async ({ request }) => asCurl(request),
    Python: async ({ request }) => asPython(request),
    "MCP call": async ({ request, answer }) => asMcp(request, answer),
    link: async () => location.href,
  };
  return menu(
    h("summary", "Copy as"),
    h(
      "div.menu-items",
      Object.entries(forms).map(([name, make]) =>
        h(
          "button.plain",
          {
            type: "button",
            onclick: async (event) => {
              const menu = event.target.closest("details");
              menu.open = false;
              menu.querySelector("summary").focus();
              const state = current();
              if (!state.answer) return toast("Search first.");
              try {
                await copyText(await make(state), name);
              } catch (error) {
                toast(error.message);
              }
            },
          },
          name,
        ),
      ),
    ),
  );
}
