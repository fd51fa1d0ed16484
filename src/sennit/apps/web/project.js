// The choice of a project: the indexed folder that a search, a block or a plan is limited to.

import { get } from "./api.js";
import { field, h } from "./dom.js";

export async function loadProjects() {
  return (await get("/v1/projects")).projects;
}

/** A field to choose a project; nothing where there is none to choose. */
export function projectField(projects, chosen, onchange) {
  if (projects.length < 2 && !chosen) return null;
  const names = [...new Set([...projects.map((one) => one.name), ...(chosen ? [chosen] : [])])];
  const select = h("select", { onchange: () => onchange(select.value) }, h("option", { value: "" }, "all"), names.map((name) => h("option", { value: name, title: projects.find((one) => one.name === name)?.path }, name)));
  select.value = chosen;
  const element = field("Project", select);
  element.classList.add("project");
  return element;
}
