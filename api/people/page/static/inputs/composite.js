// The inputs of composite fields: settings, lists of settings, and names with values.
import { h } from "../dom.js";
import { isSame, labelOf, leaf, meaningOf } from "./leaf.js";

const FIRST = new Set(["command", "env", "health_check", "hosts", "path_prefix"]); // the fields that people change most
const HOLDING = new Set(["values", "items", "variables"]);
const MASK = "***";

/** Whether a field is drawn by its inner fields. */
export const isComposite = ({ kind, fields }) => kind === "variables" || (HOLDING.has(kind) && fields.length > 0);

/** Whether a field is shown unfolded: it is required, or has no default value. */
export const isProminent = (field, value) => field.is_needed || FIRST.has(field.name) || (value !== undefined && !isSame(value, field.default));

/** A field: its element, and `read()`, its value as YAML in one line, or undefined for the default. */
export function control(field, value, id) {
  if (!isComposite(field)) return leaf(field, value, id);
  return { values: settings, items, variables }[field.kind](field, value, id);
}

function settings(field, value, id) {
  const hasNull = field.may_be_null && !field.when; // the choice next to it says whether there is one
  const isOn = value === undefined ? field.default !== null : value !== null;
  const inner = parts(field.fields, value ?? {}, id, hasNull || Boolean(field.when));
  const turn = hasNull ? h("input", { type: "checkbox", id, checked: isOn }) : null;
  const legend = h("legend", {}, turn ? [turn, " ", h("label", { for: id }, labelOf(field))] : labelOf(field));
  const body = h("div", {}, h("span", { class: "dim" }, meaningOf(field)), inner.element);
  turn?.addEventListener("change", () => (body.hidden = !turn.checked));
  body.hidden = Boolean(turn) && !isOn;
  const read = () => {
    if (turn && !turn.checked) return field.default === null ? undefined : "null";
    const text = inner.read();
    return text === "{}" && !turn ? undefined : text;
  };
  return { element: h("fieldset", {}, legend, body), read };
}

/** The fields of one object: set ones first, the others folded; of those that depend on a choice, only its own. `isOpen`: folds none. */
function parts(fields, value, id, isOpen = false) {
  const choiceOf = (field) => field.when.split("=");
  const isChosen = (field) => !field.when || (value[choiceOf(field)[0]] ?? defaultOf(fields, choiceOf(field)[0])) === choiceOf(field)[1];
  const made = fields.map((field, place) => {
    const own = isChosen(field) ? value[field.name] : undefined;
    return { field, isFirst: isProminent(field, own) || Boolean(field.when && field.fields.length), ...control(field, own, `${id}-${field.name}${field.when ? place : ""}`) };
  });
  const rest = made.filter(({ isFirst }) => !isFirst);
  const more = rest.length ? h("details", { open: isOpen && rest.length === made.length }, h("summary", {}, "More"), rest.map(({ element }) => element)) : null;
  const element = h("div", {}, made.filter(({ isFirst }) => isFirst).map(({ element }) => element), more);
  const choose = () => {
    for (const { field, element: part } of made.filter(({ field }) => field.when)) {
      const [name, wanted] = choiceOf(field);
      const choice = made.find((other) => other.field.name === name);
      part.hidden = (choice.element.querySelector("select").value || choice.field.default) !== wanted;
    }
  };
  element.addEventListener("change", choose);
  choose();
  const read = () => {
    const pairs = made.filter(({ element: part }) => !part.hidden).map(({ field, read: readPart }) => [field.name, readPart()]);
    return `{${pairs.filter(([, text]) => text !== undefined).map(([name, text]) => `${JSON.stringify(name)}: ${text}`).join(", ")}}`;
  };
  return { element, read };
}

const defaultOf = (fields, name) => fields.find((field) => field.name === name).default;

function items(field, value, id) {
  const shown = value ?? field.default ?? [];
  const list = h("div", {});
  const made = new Map();
  let count = 0;
  const add = (item) => {
    count += 1;
    const inner = parts(field.fields, item, `${id}-${count}`);
    const remove = h("button", { type: "button" }, "Remove");
    const element = h("fieldset", {}, h("legend", {}, `${labelOf(field).replace(/s$/, "")} ${count}`), inner.element, remove);
    remove.addEventListener("click", () => {
      made.delete(element);
      changed(element);
      element.remove();
    });
    made.set(element, inner.read);
    list.append(element);
  };
  shown.forEach(add);
  const more = h("button", { type: "button" }, `Add ${labelOf(field).replace(/s$/, "").toLowerCase()}`);
  more.addEventListener("click", () => {
    add({});
    list.lastElementChild.querySelector("input, select")?.focus();
  });
  const before = JSON.stringify([...made.values()].map((read) => read()));
  const read = () => {
    const texts = [...made.values()].map((readItem) => readItem());
    if (JSON.stringify(texts) === before) return isSame(value ?? field.default, field.default) && !field.is_needed ? undefined : JSON.stringify(shown);
    return `[${texts.join(", ")}]`;
  };
  return { element: h("fieldset", {}, h("legend", {}, labelOf(field)), h("span", { class: "dim" }, meaningOf(field)), list, more), read };
}

/** Names with texts, one row each. A masked value is kept unless it is typed over. */
function variables(field, value, id) {
  const takesSecrets = field.fields.length > 0;
  const body = h("tbody", {});
  const rows = new Map();
  const add = ([name, text]) => {
    const isSecret = typeof text === "object" && text !== null;
    const isMasked = text === MASK;
    const called = h("input", { "aria-label": "Name", value: name, autocomplete: "off", spellcheck: "false" });
    const kind = takesSecrets ? h("select", { "aria-label": `Kind of ${name || "the variable"}` }, h("option", { value: "" }, "value"), h("option", { value: "secret", selected: isSecret }, "secret")) : null;
    const content = h("input", {
      "aria-label": `Value of ${name || "the variable"}`, autocomplete: "off", spellcheck: "false",
      value: isSecret ? text.secret : isMasked ? "" : text ?? "", placeholder: isMasked ? "unchanged" : null,
    });
    const remove = h("button", { type: "button", "aria-label": `Remove ${name || "the variable"}` }, "Remove");
    const row = h("tr", {}, h("td", {}, called), kind ? h("td", {}, kind) : null, h("td", {}, content), h("td", {}, remove));
    remove.addEventListener("click", () => {
      rows.delete(row);
      changed(row);
      row.remove();
    });
    rows.set(row, () => {
      if (!called.value.trim()) return content.value ? ['""', JSON.stringify(content.value)] : null;
      const said = content.value === "" && isMasked && called.value === name ? MASK : content.value;
      return [JSON.stringify(called.value.trim()), kind?.value ? `{"secret": ${JSON.stringify(said)}}` : JSON.stringify(said)];
    });
    body.append(row);
    return called;
  };
  Object.entries(value ?? field.default ?? {}).forEach(add);
  const more = h("button", { type: "button" }, field.name === "env" ? "Add variable" : `Add to ${labelOf(field).toLowerCase()}`);
  more.addEventListener("click", () => add(["", ""]).focus());
  const columns = ["Name", ...(takesSecrets ? ["Kind"] : []), "Value", ""];
  const head = h("thead", {}, h("tr", {}, columns.map((name) => (name ? h("th", { scope: "col" }, name) : h("td", {})))));
  const read = () => {
    const pairs = [...rows.values()].map((row) => row()).filter(Boolean);
    return pairs.length || value ? `{${pairs.map((pair) => pair.join(": ")).join(", ")}}` : undefined;
  };
  return { element: h("fieldset", {}, h("legend", { id: `${id}-head` }, labelOf(field)), h("span", { class: "dim" }, meaningOf(field)), h("table", { class: "variables", "aria-labelledby": `${id}-head` }, head, body), more), read };
}

/** Treats a removed row as a change of the form, as typing is. */
const changed = (element) => element.dispatchEvent(new Event("input", { bubbles: true }));
