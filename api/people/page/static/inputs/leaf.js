// The input of a field with one value: its label, its meaning, and its value as YAML.
import { h } from "../dom.js";

const LABELS = {
  through_freeze: "Ignore freeze", anyway: "Allow a revision that never started", supersede: "Replace the rollout under way",
  full: "Skip remaining steps", env: "Variables", spec: "Settings",
};
const NUMBER = /^-?\d+(\.\d+)?$/;
const NUMBERS = new Set(["integer", "number"]);

/** E.g. "Idle timeout, in s" for idle_timeout_seconds. */
export function labelOf({ name, unit, label }) {
  if (label ?? LABELS[name]) return label ?? LABELS[name];
  const words = (unit === "s" ? name.replace(/_seconds$/, "") : name).replaceAll("_", " ");
  return `${words[0].toUpperCase()}${words.slice(1)}${unit ? `, in ${unit}` : ""}`;
}

/** The meaning of a field, as plain text. */
export const meaningOf = ({ meaning }) => meaning.replaceAll("`", "");

/** An input with its label and its meaning. */
export function framed(field, input, { beside = null, label = labelOf(field) } = {}) {
  const { id } = input.matches("input, select, textarea") ? input : input.querySelector("input, select, textarea");
  const means = h("span", { class: "dim", id: `${id}-means` }, meaningOf(field));
  const name = h("label", { for: id }, label);
  return h("div", { class: `field${field.kind === "boolean" ? " flag" : ""}` }, field.kind === "boolean" ? [input, name] : [name, input], beside, means);
}

/** The input alone. `choices`: the existing names that it may take. */
export function inputOf(field, attributes, value, choices = new Map()) {
  const shared = { ...attributes, "aria-describedby": `${attributes.id}-means` };
  const list = field.choices.length ? field.choices : [...choices.keys()];
  const option = (name) => h("option", { value: name, selected: name === value }, choices.get(name) ?? name);
  switch (field.kind) {
    case "boolean":
      return h("input", { ...shared, type: "checkbox", value: "true", required: null, checked: value ?? field.default });
    case "integer":
    case "number":
      return h("input", { ...shared, type: "number", min: field.least, max: field.most, step: field.kind === "integer" ? 1 : "any", value: value ?? "", placeholder: hint(field) });
    case "documents":
      return textArea({ ...shared, rows: 12, placeholder: "YAML or JSON: paste it, or drop a file" }, value ?? "");
    case "values":
      return textArea({ ...shared, rows: 3, placeholder: "YAML or JSON in brackets" }, value === undefined || value === null ? "" : JSON.stringify(value, null, 2));
    case "words": {
      const text = Array.isArray(value) ? value.map(quoted).join(" ") : "";
      if (field.name === "command") return textArea({ ...shared, rows: Math.min(3, 1 + Math.floor(text.length / 60)), placeholder: hint(field) }, text);
      return h("input", { ...shared, autocomplete: "off", placeholder: hint(field), value: text });
    }
  }
  if (list.length && (field.is_needed || field.choices.length)) {
    const isOpen = field.is_needed && field.names && !list.includes(value); // nobody has chosen yet
    return h("select", shared, field.is_needed && !isOpen ? null : h("option", { value: "" }, isOpen ? "Choose …" : field.default ?? ""), list.map(option));
  }
  const attached = list.length ? { list: `${attributes.id}-list` } : {};
  const input = h("input", { ...shared, ...attached, maxlength: field.kind === "text" ? field.most : null, autocomplete: "off", placeholder: hint(field), value: value ?? "" });
  return list.length ? h("span", {}, input, h("datalist", { id: attached.list }, list.map(option))) : input;
}

function textArea(attributes, text) {
  const area = h("textarea", { ...attributes, spellcheck: "false" });
  area.value = text;
  return dropped(area);
}

function hint({ example, default: usual, may_be_null: mayBeNull }) {
  const shown = usual ?? example;
  if (mayBeNull && usual !== null) return "none";
  if (Array.isArray(shown)) return shown.map(quoted).join(" ");
  return shown === null || shown === "" || typeof shown === "object" ? null : String(shown);
}

/** Quoted for a shell. */
export const quoted = (word) => (/^[\w@%+=:,./{}-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

/** Whether two values are equal as JSON. */
export const isSame = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);

/** An inner field: its row, and its value as YAML in one line, or undefined for the default. */
export function leaf(field, value, id) {
  const hasNull = field.may_be_null && field.default !== null; // emptied, it is null and not its default
  const present = hasNull && value === undefined ? field.default : value;
  const isSet = !isSame(present, field.default);
  const input = inputOf(field, { id }, isSet || hasNull || field.kind === "boolean" ? present : undefined);
  const element = framed(field, input);
  const inner = element.querySelector("input, select, textarea");
  const before = inner.value;
  const read = () => {
    if (field.kind === "boolean") return inner.checked === Boolean(field.default) ? undefined : String(inner.checked);
    if (inner.value === before && (isSet || !field.is_needed)) return isSet ? JSON.stringify(present) : undefined; // unchanged
    if (inner.value === "") return hasNull ? "null" : undefined;
    return written(field, inner.value);
  };
  return { element, read };
}

function written({ kind, name }, text) {
  if (kind === "values") return text;
  if (kind === "amount" || NUMBERS.has(kind)) return NUMBER.test(text.trim()) ? text.trim() : JSON.stringify(text);
  if (kind === "words" && name !== "command") return JSON.stringify(text.split(/\s+/).filter(Boolean));
  return JSON.stringify(text);
}

function dropped(area) {
  area.addEventListener("dragover", (event) => event.preventDefault());
  area.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    take(area, file);
  });
  return area;
}

/** Lets a person choose a file instead of pasting it. */
export function filePicker(area) {
  const picker = h("input", { type: "file", accept: ".yaml,.yml,.json", "aria-label": "A file" });
  picker.addEventListener("change", () => picker.files.length && take(area, picker.files[0]));
  return picker;
}

async function take(area, file) {
  area.value = await file.text();
  area.dispatchEvent(new Event("input", { bubbles: true }));
}
