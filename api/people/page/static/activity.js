// What people did in the fleet, newest first. The address keeps the filter and the place in the list.
import { h, morphChildren } from "./dom.js";
import { folds } from "./sections/history.js";
import { ask, isFinal, watch } from "./stream.js";
import { tick } from "./words.js";

const PAGE = 50;
const KINDS = ["rollouts", "settings", "freezes", "hosts", "subscriptions", "tokens", "sign-ins"];
const BEGINNING = "1970-01-01T00:00:00Z";
const chosen = new URLSearchParams(location.search);
const form = document.getElementById("sift");

/** The address of the same filter at another place of the list; "" for its beginning. */
function at(before) {
  const address = new URLSearchParams([...chosen].filter(([name, value]) => name !== "before" && value));
  if (before) address.set("before", before);
  return `/activity${address.size ? `?${address}` : ""}`;
}

/** A day of the local clock, from its beginning to that of the next. */
function hours(day) {
  const begin = new Date(`${day}T00:00`);
  if (Number.isNaN(begin.getTime())) return { since: BEGINNING };
  const end = new Date(begin);
  end.setDate(end.getDate() + 1);
  return { since: begin.toISOString(), until: end.toISOString() };
}

function path() {
  const query = new URLSearchParams({ limit: PAGE, ...hours(chosen.get("day")) });
  for (const name of ["who", "deployment", "kind"]) if (chosen.get(name)) query.set(name, chosen.get(name));
  if (!chosen.get("engine")) query.set("people", "true");
  if (chosen.get("before")) query.set("cursor", chosen.get("before"));
  return `/v1/history?${query}`;
}

function place({ deployment, rollout_id: rollout }) {
  if (!deployment) return h("span", { class: "of" });
  const address = `/deployments/${encodeURIComponent(deployment)}`;
  const more = rollout ? [" · ", h("a", { href: `${address}/rollouts/${rollout}` }, "rollout")] : null;
  return h("span", { class: "of" }, h("a", { href: address }, deployment), more);
}

function draw({ items, next }) {
  const link = (name, before) => h("a", { href: at(before), "data-key": name }, name);
  morphChildren(document.getElementById("activity"), h("div", {},
    items.length ? h("ol", { class: "card history of-fleet", "data-key": "records" }, folds(items, place))
      : h("p", { class: "empty" }, "Nothing of this kind is recorded."),
    h("p", { class: "pages", "data-key": "pages" }, chosen.get("before") ? [link("Newest", ""), " "] : null, next ? link("Earlier", next) : null)));
  const people = new Set(items.filter(({ actor, phase }) => actor !== phase).map(({ actor }) => actor));
  document.getElementById("people").replaceChildren(...[...people].sort().map((value) => h("option", { value })));
}

async function refresh() {
  try {
    draw(await ask(path()));
  } catch (error) {
    if (!isFinal(error)) throw error;
    morphChildren(document.getElementById("activity"), h("div", {}, h("p", { class: "why warn" }, error.message)));
  }
}

document.getElementById("kind").append(...KINDS.map((value) => h("option", { value }, value)));
for (const [name, value] of chosen) {
  const input = form.elements[name];
  if (input?.type === "checkbox") input.checked = Boolean(value);
  else if (input) input.value = value;
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const address = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  location.assign(`/activity${address.size ? `?${address}` : ""}`);
});
setInterval(() => document.visibilityState === "visible" && tick(), 1000);
watch(refresh);
