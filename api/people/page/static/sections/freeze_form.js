// The form of a freeze: its length by a choice, or its times by the local clock. Hidden inputs hold the values that are sent.
import { h } from "../dom.js";

const DAY = 86_400;
const SECONDS = { s: 1, sec: 1, min: 60, m: 60, h: 3600, d: DAY, day: DAY, days: DAY };
const LONGEST = 31 * DAY;
const MORNING = 8; // o'clock
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const CLOCK = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", hour: "numeric", minute: "2-digit" });
const CHOICES = { "1 h": "1 h", "4 h": "4 h", morning: "until tomorrow 8:00", length: "another length …", times: "from … until …", cron: "again and again, by a cron line …" };

/** The inputs of the dialog. `names`: of the existing deployments. */
export function freezeInputs(_fields, _known, { names = [] }) {
  const field = (id, label, means, input) => h("div", { class: "field", "data-for": id },
    h("label", { for: `ask-${id}` }, label), input, means ? h("span", { class: "dim", id: `ask-${id}-means` }, means) : null);
  const text = (id, attributes = {}) => h("input", { id: `ask-${id}`, autocomplete: "off", "aria-describedby": `ask-${id}-means`, ...attributes });
  const hidden = (name) => h("input", { type: "hidden", name });
  const choice = h("select", { id: "ask-lasts" }, Object.entries(CHOICES).map(([value, label]) => h("option", { value, selected: value === "4 h" }, label)));
  const form = h("div", { id: "freeze-form" },
    field("freeze", "Name", null, text("freeze", { name: "freeze", required: true, value: nameOf(new Date()), pattern: "[a-z0-9]([a-z0-9.\\-]{0,61}[a-z0-9])?", "aria-describedby": null })),
    field("lasts", "Length", null, choice),
    field("length", "Its length", "With a unit: 90 min, 6 h or 2 d.", text("length", { placeholder: "90 min" })),
    field("from", "Starts at", `As clocks show it in ${ZONE}.`, text("from", { type: "datetime-local" })),
    field("until", "Ends at", `As clocks show it in ${ZONE}.`, text("until", { type: "datetime-local" })),
    field("cron", "Cron line", `Five fields, such as 0 18 * * FRI, in ${ZONE}.`, text("cron", { placeholder: "0 18 * * FRI" })),
    h("p", { class: "dim", id: "freeze-end", role: "status" }),
    field("deployments", "Deployments", "Names, or name prefixes that end in *, with blanks between; empty, without groups: all.",
      h("span", {}, text("deployments", { name: "deployments", list: "ask-deployments-list", placeholder: "all" }), h("datalist", { id: "ask-deployments-list" }))),
    h("details", {}, h("summary", {}, "More"),
      field("groups", "Groups", "And the deployments of these groups, with blanks between.", text("groups", { name: "groups" })),
      h("div", { class: "field flag" }, text("pauses", { type: "checkbox", name: "pauses", value: "true" }), h("label", { for: "ask-pauses" }, "Pause rollouts under way"),
        h("span", { class: "dim", id: "ask-pauses-means" }, "Otherwise they finish."))),
    ["duration_seconds", "starts_at", "ends_at", "cron", "time_zone"].map(hidden));
  form.addEventListener("input", ({ target }) => (target.id === "ask-deployments" ? suggest(form, names) : draw(form)));
  suggest(form, names);
  draw(form);
  return form;
}

/** A name with the time of the freeze: freeze-1129-1015. */
function nameOf(at) {
  const two = (number) => String(number).padStart(2, "0");
  return `freeze-${two(at.getMonth() + 1)}${two(at.getDate())}-${two(at.getHours())}${two(at.getMinutes())}`;
}

const SHOWN = { length: ["length"], times: ["from", "until"], cron: ["cron", "length"] };

/** Shows the fields of the choice and its end, and fills in the hidden inputs. */
function draw(form) {
  const input = (id) => form.querySelector(`#ask-${id}`);
  const lasts = input("lasts").value;
  for (const id of ["length", "from", "until", "cron"]) {
    const isShown = SHOWN[lasts]?.includes(id) ?? false;
    form.querySelector(`[data-for=${id}]`).hidden = !isShown;
    input(id).required = isShown;
    input(id).setCustomValidity("");
  }
  const { end, ...values } = WINDOWS[lasts in WINDOWS ? lasts : "length"](input);
  for (const hidden of form.querySelectorAll("[type=hidden]")) hidden.value = values[hidden.name] ?? "";
  form.querySelector("#freeze-end").textContent = end ? `It ends ${CLOCK.format(end)} (${ZONE}).` : "";
}

/** The values of each choice, and its end if it has one. */
const WINDOWS = {
  morning: () => {
    const end = new Date();
    end.setDate(end.getDate() + 1);
    end.setHours(MORNING, 0, 0, 0);
    return { starts_at: new Date().toISOString(), ends_at: end.toISOString(), end };
  },
  times: (input) => {
    const [begin, end] = ["from", "until"].map((id) => new Date(input(id).value));
    if ([begin, end].some((at) => Number.isNaN(at.getTime()))) return {};
    if (end <= begin) input("until").setCustomValidity("Ends at must be later than Starts at.");
    return { starts_at: begin.toISOString(), ends_at: end.toISOString(), end };
  },
  cron: (input) => ({ cron: input("cron").value, time_zone: ZONE, duration_seconds: seconds(input("length")) }),
  length: (input) => {
    const lasts = input("lasts").value;
    const length = lasts === "length" ? seconds(input("length")) : SECONDS.h * Number.parseInt(lasts, 10);
    return length ? { duration_seconds: length, end: new Date(Date.now() + 1000 * length) } : {};
  },
};

/** The seconds of a length with its unit; null with a sentence if it is invalid. */
function seconds(input) {
  const [, number, unit] = /^\s*(\d{1,7})\s*([a-z]+)\s*$/i.exec(input.value) ?? [];
  const length = Number(number) * SECONDS[unit?.toLowerCase()];
  if (length >= SECONDS.min && length <= LONGEST) return length;
  if (input.value) input.setCustomValidity("A length has a unit, such as 90 min, 6 h or 2 d; from a minute up to 31 days.");
  return "";
}

/** Completes the last of the words. */
function suggest(form, names) {
  const words = form.querySelector("#ask-deployments").value.split(/\s+/).slice(0, -1);
  const prefixes = names.filter((name) => name.includes("-")).map((name) => `${name.slice(0, name.indexOf("-") + 1)}*`);
  const offered = [...new Set([...prefixes, ...names])].filter((name) => !words.includes(name));
  form.querySelector("datalist").replaceChildren(...offered.map((name) => h("option", { value: [...words, name].join(" ") })));
}
