// The inputs of a dialog: one for each field of a command, as the server describes them.
import { h } from "./dom.js";
import { control, isComposite, isProminent } from "./inputs/composite.js";
import { filePicker, framed, inputOf } from "./inputs/leaf.js";
import { templateInputs } from "./inputs/template.js";

const readers = new WeakMap(); // by the element that holds further fields

/** All inputs: required and set fields first, the rest folded. `choices`: existing names with their descriptions. */
export function inputs({ fields, replaces }, values, choices) {
  const isFirst = (field) => field.is_needed || field.isFirst || (isComposite(field) && !replaces) || (replaces && isProminent(field, values[field.name]));
  const [first, others] = [fields.filter(isFirst), fields.filter((field) => !isFirst(field))];
  const drawn = (field) => inputFor(field, values[field.name], choices);
  const isOpen = !replaces && others.some(({ kind, name }) => values[name] === true || (!first.length && kind !== "boolean" && values[name] === undefined));
  const more = others.length ? h("details", { open: isOpen }, h("summary", {}, "More"), others.map(drawn)) : null;
  return [first.map(drawn), more];
}

function inputFor(field, value, choices) {
  const id = `ask-${field.name}`;
  if (isComposite(field)) {
    const { element, read } = control(field, value, id);
    element.dataset.field = field.name;
    readers.set(element, read);
    return element;
  }
  const input = inputOf(field, { id, name: field.name, required: field.is_needed }, value, choices[field.names]);
  if (field.kind !== "documents") return framed(field, input);
  const templates = field.templates ? templateInputs(field.templates, input, field.isTaken) : null;
  return [templates, framed(field, input, { beside: templates ? null : filePicker(input) })];
}

/** The values as the server reads them. A field that was emptied is null unless null is its default. */
export function said(form, { fields, replaces }) {
  const data = new URLSearchParams(new FormData(form));
  for (const { name, kind, default: usual } of fields) {
    if (kind === "boolean") data.set(name, String(form.elements[name].checked));
    const isEmptied = replaces && usual !== null && (kind === "integer" || kind === "number") && !data.get(name);
    if (isEmptied) data.set(name, "null");
  }
  for (const element of form.querySelectorAll("[data-field]")) data.set(element.dataset.field, readers.get(element)() ?? "null");
  return data;
}
