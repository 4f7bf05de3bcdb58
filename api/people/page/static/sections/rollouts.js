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
let byId = new Map();
let next = null; // the list and the cursor of the next page

/** Reads earlier rollouts when their button is pressed. `draw()`: draws the page again. */
export function offerRollouts(draw) {
  document.addEventListener("click", async ({ target }) => {
    if (target.id !== "earlier") return;
    const page = await insist(() => read(REST, ...next));
    if (page) take(page);
    draw();
  });
}

/** Reads the newest rollouts. Returns the newest one, if any. */
export async function readRollouts() {
  const page = await read(FIRST, "rollouts");
  const isJoined = page.items.some(({ id }) => byId.has(id));
  if (!isJoined) byId = new Map();
  take(isJoined ? { ...page, next } : page);
  return page.newest;
}

/** Reads a page. After the last page of rows come those of receipts. */
async function read(limit, list, cursor = "") {
  const { items, next: place } = await ask(`${PATH}/${list}?limit=${limit}&cursor=${encodeURIComponent(cursor)}`);
  const isLast = !place && list === "rollouts";
  const receipts = isLast ? await read(limit, "receipts") : { items: [], next: place && [list, place] };
  return { newest: items[0] ?? null, items: [...items, ...receipts.items], next: receipts.next };
}

function take(page) {
  for (const rollout of page.items) byId.set(rollout.id, rollout);
  next = page.next;
}

/** The section; null without rollouts. */
export function rollouts(deployment) {
  if (!byId.size) return null;
  const newestFirst = [...byId.values()].sort((first, second) => (first.id < second.id ? 1 : -1)); // ids begin with the time
  return h(
    "section",
    { class: "card", "aria-labelledby": "rollouts-head", "data-key": "rollouts" },
    h("h2", { id: "rollouts-head" }, "Rollouts"),
    h("ul", { class: "past", "data-key": "past" }, newestFirst.map((rollout) => item(rollout, deployment))),
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
