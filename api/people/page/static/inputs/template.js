// The form of a new deployment: a template's text, and next to it inputs for the fields that have a line of their own.
import { h } from "../dom.js";
import { framed, inputOf } from "./leaf.js";

const PLAIN = /^[A-Za-z/][\w./{}@%=+:~-]*( [\w./{}@%=+:~-]+)*$/;
const NO_TEXT = /^(true|false|yes|no|on|off|null|y|n)$/i;

/** The choice of a template, and its inputs, which write into `area` and read from it. `isTaken(name)`: whether the name is in use. */
export function templateInputs(templates, area, isTaken) {
  const texts = new Map();
  const typed = new Map();
  const fields = h("div", {});
  const choice = h("select", { id: "ask-template", "aria-describedby": "ask-template-means" }, templates.map(({ name, label }) => h("option", { value: name }, label)));
  const means = h("span", { class: "dim", id: "ask-template-means" });
  let chosen = null;

  const rewrite = (line, value) => {
    area.value = area.value.split("\n").map((text) => (text.startsWith(line) ? line + scalar(value) : text)).join("\n");
  };
  const row = ({ label, line, field }, place) => {
    const input = inputOf({ ...field, default: null, example: null }, { id: `ask-template-${place}`, "data-line": line });
    input.addEventListener("input", () => {
      typed.set(line, input.value);
      rewrite(line, input.value);
    });
    return framed(field, input, { label });
  };
  /** Updates the inputs from the text. */
  const read = () => {
    for (const input of fields.querySelectorAll("[data-line]")) {
      const text = area.value.split("\n").find((each) => each.startsWith(input.dataset.line));
      input.disabled = text === undefined;
      const value = text === undefined ? "" : plain(text.slice(input.dataset.line.length));
      if (input !== document.activeElement) input.value = value;
    }
  };
  const choose = () => {
    if (chosen) texts.set(chosen.name, area.value);
    chosen = templates.find(({ name }) => name === choice.value);
    means.textContent = chosen.what;
    const isNew = !texts.has(chosen.name);
    area.value = texts.get(chosen.name) ?? chosen.text;
    for (const { line } of chosen.fields) if (typed.has(line)) rewrite(line, typed.get(line));
    if (isNew) rewrite("deployment: ", free(plain(area.value.split("\n")[0].slice("deployment: ".length)), isTaken));
    fields.replaceChildren(...chosen.fields.map(row));
    read();
  };
  choice.addEventListener("change", choose);
  area.addEventListener("input", read);
  choose();
  return h("div", {}, h("div", { class: "field" }, h("label", { for: "ask-template" }, "Template"), choice, means), fields);
}

/** The first free name: web, web-2, and so on. */
function free(name, isTaken) {
  for (let number = 1; ; number += 1) {
    const candidate = number === 1 ? name : `${name}-${number}`;
    if (!isTaken(candidate)) return candidate;
  }
}

/** A value as YAML in one line. */
function scalar(value) {
  if (/^\d+$/.test(value)) return value;
  return PLAIN.test(value) && !NO_TEXT.test(value) && !value.includes(": ") && !value.endsWith(":") ? value : JSON.stringify(value);
}

/** The value of one line of YAML. */
function plain(text) {
  if (!text.startsWith('"')) return text.trim();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
