// The inputs of a dialog: one for each field of a command, as the server says what it takes.
import { h } from "./dom.js";

/** Everything that is asked: what must be said, and the rest folded, open where nothing must be. `choices`: names of things with their words. */
export function inputs(fields, known, choices) {
  const [needed, others] = [fields.filter((field) => field.is_needed), fields.filter((field) => !field.is_needed)];
  const drawn = (field) => asked(field, known, choices);
  const isOpen = others.some(({ name }) => known[name] === true) || (!needed.length && others.some(({ kind, name }) => kind !== "boolean" && known[name] === undefined));
  const more = others.length ? h("details", { open: isOpen }, h("summary", {}, "More"), others.map(drawn)) : null;
  return [needed.map(drawn), more];
}

function asked(field, known, choices) {
  const id = `ask-${field.name}`;
  const attributes = { id, name: field.name, required: field.is_needed, "aria-describedby": `${id}-means` };
  const input = made(field, attributes, known, choices);
  const means = h("span", { class: "dim", id: `${id}-means` }, field.meaning);
  const label = h("label", { for: id }, labelOf(field));
  if (field.kind === "boolean") return h("div", { class: "field flag" }, input, label, means);
  return h("div", { class: "field" }, label, input, field.kind === "documents" || field.kind === "values" ? filePicker(input) : null, means);
}

const LABELS = {
  through_freeze: "Ignore freeze", anyway: "Allow a revision that never started", supersede: "Replace the rollout under way",
  full: "Skip remaining steps",
};

/** E.g. "Idle timeout, in s" for idle_timeout_seconds. */
function labelOf({ name, unit }) {
  if (LABELS[name]) return LABELS[name];
  const words = (unit === "s" ? name.replace(/_seconds$/, "") : name).replaceAll("_", " ");
  return `${words[0].toUpperCase()}${words.slice(1)}${unit ? `, in ${unit}` : ""}`;
}

function made(field, attributes, known, choices) {
  const value = known[field.name] ?? "";
  const offered = choices[field.names] ?? new Map();
  const list = field.choices.length ? field.choices : [...offered.keys()];
  const option = (name) => h("option", { value: name, selected: name === value }, offered.get(name) ?? name);
  switch (field.kind) {
    case "boolean":
      return h("input", { ...attributes, type: "checkbox", value: "true", required: null, checked: known[field.name] ?? field.default });
    case "integer":
    case "number":
      return h("input", { ...attributes, type: "number", min: field.least, max: field.most, step: field.kind === "integer" ? 1 : "any", value, placeholder: hint(field) });
    case "documents":
    case "values": {
      const text = h("textarea", { ...attributes, rows: 9, spellcheck: "false", placeholder: "YAML or JSON: paste it, or drop a file" });
      text.value = value === "" ? "" : JSON.stringify(value, null, 2);
      return dropped(text);
    }
    case "words":
      return h("input", { ...attributes, autocomplete: "off", placeholder: hint(field), value: Array.isArray(value) ? value.map(quoted).join(" ") : "" });
  }
  if (list.length && (field.is_needed || field.choices.length)) {
    const isOpen = field.is_needed && field.names && !list.includes(value); // nobody has chosen yet
    return h("select", attributes, field.is_needed && !isOpen ? null : h("option", { value: "" }, isOpen ? "Choose …" : field.default ?? ""), list.map(option));
  }
  const attached = list.length ? { list: `${attributes.id}-list` } : {};
  const input = h("input", { ...attributes, ...attached, maxlength: field.most, autocomplete: "off", placeholder: hint(field), value });
  return list.length ? h("span", {}, input, h("datalist", { id: attached.list }, list.map(option))) : input;
}

function hint({ example, default: usual }) {
  const shown = usual ?? example;
  if (Array.isArray(shown)) return shown.map(quoted).join(" ");
  return shown === null || shown === "" || typeof shown === "object" ? null : String(shown);
}

const quoted = (word) => (/[\s"'\\]/.test(word) ? JSON.stringify(word) : word);

function dropped(text) {
  text.addEventListener("dragover", (event) => event.preventDefault());
  text.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    take(text, file);
  });
  return text;
}

function filePicker(text) {
  const picker = h("input", { type: "file", accept: ".yaml,.yml,.json", "aria-label": "A file" });
  picker.addEventListener("change", () => picker.files.length && take(text, picker.files[0]));
  return picker;
}

async function take(text, file) {
  text.value = await file.text();
  text.dispatchEvent(new Event("input", { bubbles: true }));
}

/** What was filled in, as the server reads it; what is shown and was emptied is null where it would not be otherwise. */
export function said(form, { fields, replaces }) {
  const data = new URLSearchParams(new FormData(form));
  for (const { name, kind, default: usual } of fields) {
    if (kind === "boolean") data.set(name, String(form.elements[name].checked));
    const isEmptied = replaces && usual !== null && (kind === "integer" || kind === "number") && !data.get(name);
    if (isEmptied) data.set(name, "null");
  }
  return data;
}
