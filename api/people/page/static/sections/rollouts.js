// The rollouts of a deployment, newest first: time, revisions and outcome. Each links to its own page.
// Receipts list the rollouts whose rows have been deleted.
import { h } from "../dom.js";
import { ask, insist } from "../stream.js";
import { clock, duration, now } from "../words.js";
import { outcomeBadge } from "./rollout.js";

const PLACE = encodeURIComponent(document.body.dataset.deployment);
const PATH = `/v1/deployments/${PLACE}`;
const FIRST = 10;
const REST = 50;
let known = new Map();
let next = null; // the list and the cursor of the next page

/** Reads earlier rollouts when their button is pressed. `draw()`: draws the page again. */
export function offerRollouts(draw) {
  document.addEventListener("click", async ({ target }) => {
    if (target.id !== "earlier") return;
    const found = await insist(() => read(REST, ...next));
    if (found) take(found);
    draw();
  });
}

/** Reads the newest rollouts. Returns the newest one, if any. */
export async function readRollouts() {
  const found = await read(FIRST, "rollouts");
  const isJoined = found.items.some(({ id }) => known.has(id));
  if (!isJoined) known = new Map();
  take(isJoined ? { ...found, next } : found);
  return found.newest;
}

/** Reads a page. After the last page of rows come those of receipts. */
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

/** The section; null without rollouts. */
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
