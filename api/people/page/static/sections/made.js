// The button that creates a deployment from a template, and links to what it or a file has created.
import { h } from "../dom.js";
import { ask, insist } from "../stream.js";

const MOST = 20;
const FIELDS = new Set(["documents", "through_freeze"]);

/** The button, if this person may create deployments. Its file begins with a template. `isTaken(name)`: whether the name is in use. */
export async function newDeployment(offered, isTaken) {
  const apply = offered.find(({ verb }) => verb === "apply");
  const templates = apply && (await insist(() => ask("/v1/templates")))?.items;
  if (!templates) return [];
  const fields = apply.fields.filter(({ name }) => FIELDS.has(name)).map((field) => (field.kind === "documents" ? { ...field, templates, isTaken } : field));
  return [{ ...apply, verb: "new", path: "apply", label: "New deployment …", does: "Make it", what: "Choose a template, fill in its fields, and change the text as you like.", fields }];
}

/** Shows the result of each document of the file. */
export function showMade(place, documents) {
  const items = documents.slice(0, MOST).map(({ deployment, done, results, notes = [] }) => {
    const isNew = results.some((result) => result.deployment_id);
    const what = isNew ? " is made" : done.length ? " is changed" : " is as the text says already";
    const link = h("a", { href: `/deployments/${encodeURIComponent(deployment)}` }, deployment);
    return h("li", {}, link, what, done.length ? `: ${done.join("; ")}` : "", notes.map((note) => h("span", { class: "warn" }, ` ${note}.`)));
  });
  const more = documents.length > MOST ? h("li", { class: "dim" }, `and ${documents.length - MOST} more`) : null;
  place.replaceChildren(h("ul", { class: "card made" }, items, more));
}
