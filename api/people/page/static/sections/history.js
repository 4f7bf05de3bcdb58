// The history, newest first, in pages; past failures are folded.
import { h } from "../dom.js";
import { ask, insist } from "../stream.js";
import { clock, NARROW, since } from "../words.js";

const PATH = `/v1/deployments/${encodeURIComponent(document.body.dataset.deployment)}/history`;
const PAGE = 50;
const FEW = 3; // on a phone
const FAILED = new Set(["error", "expired", "give_up"]);
const ASKED = "asked"; // the result of a command
const NO_ID = "00000000-0000-0000-0000-000000000000";
/** The names of handlers on the page. */
const WORDS = {
  check_pending: "first revision", check_replica: "check of replicas", reconcile: "check of replicas",
  deploying_preparing: "preparation", deploying_provisioning: "rollout", deploying_rolling_back: "rollback",
};
let isOfPeople = false;
let earlier = [];
let isEnd = false;
let isReading = false;

/** Listens to the buttons. `shown()`: the records of the section; `draw()`: draws it again. */
export function offerHistory(shown, draw) {
  document.addEventListener("click", async ({ target }) => {
    const what = target.closest("[data-history]")?.dataset.history;
    if (!what) return;
    if (what === "people") {
      [isOfPeople, earlier, isEnd] = [!isOfPeople, [], false];
      draw();
    }
    if (what === "earlier" || isOfPeople) await read(shown());
    draw();
  });
}

/** Reads one page at a time, so that none is read twice. */
async function read(records) {
  if (isReading) return;
  isReading = true;
  await readPage(records);
  isReading = false;
}

async function readPage(records) {
  const [ofPeople, last] = [isOfPeople, listed(records).at(-1)];
  const cursor = last ? `&cursor=${encodeURIComponent(`${last.updated_at}/${NO_ID}`)}` : "";
  const page = await insist(() => ask(`${PATH}?limit=${PAGE}&people=${ofPeople}${cursor}`));
  if (!page || ofPeople !== isOfPeople) return;
  earlier.push(...page.items);
  isEnd = !page.next;
}

/** The newest records, followed by the pages that were read. */
function listed(records) {
  const newest = isOfPeople ? records.filter(({ result }) => result === ASKED) : records;
  const keys = new Set(newest.map(keyOf));
  return [...newest, ...earlier.filter((record) => !keys.has(keyOf(record)))];
}

/** The section. `records`: from `/v1/deployments/NAME/history`, newest first. */
export function history(records) {
  const shown = listed(records);
  const rows = folds(shown);
  const few = earlier.length || isOfPeople || !NARROW.matches ? rows.length : FEW;
  const hasMore = !isEnd && (isOfPeople || records.length >= PAGE);
  const more = hasMore ? h("button", { type: "button", "data-history": "earlier", "data-key": "earlier" }, "Earlier") : null;
  const isFolded = rows.length > few;
  return h(
    "section",
    { class: "card", "aria-labelledby": "history-head", "data-key": "history" },
    h("div", { class: "titled" }, h("h2", { id: "history-head" }, "History"),
      h("button", { type: "button", class: "quiet", "data-history": "people", "aria-pressed": String(isOfPeople) }, "Only people's actions")),
    h("ol", { class: "history" }, rows.slice(0, few)),
    isFolded ? h("details", { class: "fold", "data-key": "older" }, h("summary", {}, `${rows.length - few} older`), h("ol", { class: "history" }, rows.slice(few)), more) : null,
    shown.length ? null : h("p", { class: "empty" }, "Nothing yet."),
    isFolded ? null : more,
  );
}

/** Records as rows; past failures in a row share one. */
export function folds(records, more) {
  const groups = [];
  for (const record of records) {
    const isFailure = FAILED.has(record.result);
    const last = groups.at(-1);
    if (last && isFailure && last.isFailure) last.records.push(record);
    else groups.push({ isFailure, records: [record] });
  }
  const lines = (some) => some.map((record) => line(record, more));
  return groups.map((group, place) => (group.isFailure && place ? folded(group.records, lines) : lines(group.records)));
}

function folded(records, lines) {
  const count = records.reduce((sum, record) => sum + record.attempts, 0);
  const oldest = records.at(-1);
  return h(
    "li",
    { "data-key": `fold ${keyOf(oldest)}`, class: "fold" },
    h("details", {},
      h("summary", {}, `${count} ${count === 1 ? "failure" : "failures"} that ${count === 1 ? "is" : "are"} over, `, since(records[0].updated_at, "ago")),
      h("ol", { class: "history" }, lines(records))),
  );
}

const keyOf = ({ created_at: at, phase, result, target, deployment = "", actor }) => `${at} ${phase} ${result} ${target} ${deployment} ${actor}`;

/** `more(record)`: a further cell after the person, such as the deployment. */
function line(record, more = () => null) {
  const who = record.actor === record.phase ? "" : record.actor; // for a handler, actor and phase are the same
  const kind = FAILED.has(record.result) ? "failed" : who ? "person" : "";
  return h(
    "li",
    { "data-key": keyOf(record), class: `record ${kind}` },
    clock(record.updated_at),
    since(record.updated_at, "ago"),
    h("span", { class: "phase" }, WORDS[record.phase] ?? record.phase.replaceAll("_", " ")),
    h("span", { class: "who" }, who),
    more(record),
    h("span", { class: "message" }, record.message, record.attempts > 1 ? h("span", { class: "dim" }, ` (${record.attempts} times)`) : null),
  );
}
