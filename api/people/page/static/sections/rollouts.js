// The rollouts of a deployment, the newest first: when, from what to what, how it went. Each leads to its own page.
// Those whose rows are cut follow as their receipts keep them.
import { h } from "../dom.js";
import { ask, insist } from "../stream.js";
import { clock, duration, now } from "../words.js";
import { outcomeBadge } from "./rollout.js";

const PLACE = encodeURIComponent(document.body.dataset.deployment);
const PATH = `/v1/deployments/${PLACE}`;
const FIRST = 10;
const REST = 50;
let known = new Map();
let next = null; // list and cursor of the next page

/** Listens to the button for earlier ones. `draw()`: what is known has changed. */
export function offerRollouts(draw) {
  document.addEventListener("click", async ({ target }) => {
    if (target.id !== "earlier") return;
    const found = await insist(() => read(REST, ...next));
    if (found) take(found);
    draw();
  });
}

/** Reads the newest ones. Returns the last that has begun, if there is one. */
export async function readRollouts() {
  const found = await read(FIRST, "rollouts");
  const isJoined = found.items.some(({ id }) => known.has(id));
  if (!isJoined) known = new Map();
  take(isJoined ? { ...found, next } : found);
  return found.newest;
}

/** A page; after the last one with rows comes the first of those that receipts keep. */
async function read(limit, list, cursor = "") {
  const { items, next: place } = await ask(`${PATH}/${list}?limit=${limit}&cursor=${encodeURIComponent(cursor)}`);
  const isLast = !place && list === "rollouts";
  const kept = isLast ? await read(limit, "receipts") : { items: [], next: place && [list, place] };
  return { newest: items[0] ?? null, items: [...items, ...kept.items], next: kept.next };
}

function take(found) {
  for (const rollout of found.items) known.set(rollout.id, rollout);
  next = found.next;
}

/** The section; nothing while there is none. */
export function rollouts(deployment) {
  if (!known.size) return null;
  const found = [...known.values()].sort((first, second) => (first.id < second.id ? 1 : -1)); // ids begin with the time
  return h(
    "section",
    { class: "card", "aria-labelledby": "rollouts-head", "data-key": "rollouts" },
    h("h2", { id: "rollouts-head" }, "Rollouts"),
    h("ul", { class: "past", "data-key": "past" }, found.map((rollout) => item(rollout, deployment))),
    next ? h("button", { type: "button", id: "earlier", "data-key": "earlier" }, "Earlier rollouts") : null,
  );
}

function item(rollout, deployment) {
  const { id, from_revision: from, to_revision: to, outcome, started_at: began, ended_at: end, actor, reason } = rollout;
  const took = duration((outcome ? Date.parse(end) : now()) - Date.parse(began));
  return h(
    "li",
    { "data-key": id },
    h("a", { href: `/deployments/${PLACE}/rollouts/${id}` }, clock(began)),
    h("span", { class: "revision" }, `${from} → ${to}`, rollout.is_undo ? h("span", { class: "dim" }, " rollback") : null),
    outcomeBadge(rollout, deployment),
    h("span", { class: "took" }, `${outcome ? "in" : "for"} ${took}`),
    h("span", { class: "by" }, reason ? `${actor}: “${reason}”` : actor),
  );
}
