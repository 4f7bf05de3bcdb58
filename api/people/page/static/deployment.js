// The page of a deployment: its wait, its replicas, its rollout on a time line, and its history.
import { buttons, lookAgain, missing, offerButtons } from "./ask.js";
import { callers } from "./sections/callers.js";
import { h, morphChildren } from "./dom.js";
import { curves } from "./sections/evidence.js";
import { freeze, head, lost, reached, sentence } from "./sections/head.js";
import { history, offerHistory } from "./sections/history.js";
import { keepEnd, logButton, offerLogs, openLog } from "./sections/logs.js";
import { endedReplicas, offerEnded, readEnded, replicas } from "./sections/replicas.js";
import { choices, offerRevisions, revisions } from "./sections/revisions.js";
import { rollout } from "./sections/rollout.js";
import { offerRollouts, readRollouts, rollouts } from "./sections/rollouts.js";
import { ask, follow, insist, isFinal } from "./stream.js";
import { isOlder, legend, say, setClock, tick } from "./words.js";

const NAME = document.body.dataset.deployment;
const PATH = `/v1/deployments/${encodeURIComponent(NAME)}`;
const RECORDS = 50;
const shown = { why: null, offered: [], missing: [], frozen: null, deployment: null, document: null, rollout: null, cycles: [], plan: null, evidence: null, callers: null, records: [], failed: null, fault: "", near: [] };
const WHY_PAUSE = 300;
const PLAN_PAUSE = 1000;
const REQUESTS_PAUSE = 5000;
const CALLERS_PAUSE = 10_000;
const OFFERED_PAUSE = 20_000; // a freeze sends no event
let isPlanning = false;
let plannedAt = 0;
let unprovenAt = 0;
let callersAt = 0;
let offeredAt = 0;
let isDrawing = false;
let requestedLog = new URLSearchParams(location.search).get("log") ?? "";
let isAsking = false;
let isReading = false;

function made() {
  const { deployment, document, records, cycles, plan } = shown;
  if (!deployment) return [h("p", { class: "why warn" }, shown.fault || "Loading …", meant(shown.near))];
  const past = shown.rollout;
  const isJudged = past && !past.outcome; // the curves decide whether it is promoted or aborted
  return [
    head(deployment, Boolean(shown.callers?.losses)),
    lost(shown.callers?.losses),
    sentence(deployment, shown.why, isFailing(deployment) ? logButton(shown.failed, "Log of the replica that failed") : null),
    freeze(shown.frozen),
    buttons(shown.offered, deployment.waits_for),
    missing(shown.missing),
    isJudged ? curves(shown.evidence) : null,
    reached(document),
    replicas(deployment),
    past ? rollout(past, cycles, plan, deployment, failedLog(past)) : null,
    isJudged ? null : curves(shown.evidence),
    callers(shown.callers),
    rollouts(deployment),
    revisions(document?.revisions ?? [], deployment, shown),
    history(records),
  ].filter(Boolean);
}

/** Links to deployments with a similar name, where the requested one does not exist. */
function meant(names) {
  if (!names.length) return null;
  const links = names.map((name) => h("a", { href: `/deployments/${encodeURIComponent(name)}` }, name));
  return [". Did you mean ", links.flatMap((link, place) => [place ? ", " : "", link]), "?"];
}

function live(id) {
  return shown.deployment.routes.find((route) => route.id === id);
}

const replica = (id) => live(id) ?? [...(endedReplicas() ?? []), ...(shown.failed ? [shown.failed] : [])].find((route) => route.id === id);

function draw() {
  isDrawing = false;
  keepEnd(() => morphChildren(document.getElementById("deployment"), h("div", {}, made())));
}

function soon() {
  if (!isDrawing) requestAnimationFrame(draw);
  isDrawing = true;
}

function take(deployment) {
  const current = shown.deployment;
  if (current && isOlder(deployment, current)) return;
  setClock(deployment.now);
  if (current && current.word !== deployment.word) say(`${NAME} is ${deployment.word}: ${deployment.said}`);
  if (current?.waits_for !== deployment.waits_for && deployment.waits_for) say(`${NAME} waits for you to ${deployment.waits_for} it`);
  shown.deployment = deployment;
  if (!isAsking) readWhy();
  const begun = deployment.rollout;
  const before = shown.rollout;
  if (begun) showRollout(begun);
  const hasEnded = !begun && before && !before.outcome;
  if (hasEnded) {
    insist(() => readRollout(before.id));
    readDocument();
  }
  if (hasEnded || (begun && begun.id !== before?.id)) insist(readRollouts).then(soon);
  if (begun && begun.steps !== shown.cycles.at(-1)?.step_no) insist(() => readCycles(begun.id));
  soon();
}

/** Whether starts fail now, so that the log of the last failed replica is offered. */
const isFailing = ({ failed_starts: starts }) => shown.failed && starts > 0;
const failedLog = ({ failed_routes: failed, to_revision: to }) => (failed && shown.failed?.revision === to ? logButton(shown.failed, "Log of the replica that failed") : null);

async function readFailed() {
  if (!shown.deployment.failed_starts && !shown.rollout?.failed_routes) return;
  shown.failed = (await insist(() => ask(`${PATH}/routes`)))?.last_failed ?? null;
}

const waits = () => shown.deployment.tone !== "good";

/** Reads why the deployment waits. The server decides it for each request, so the page asks after changes, and not too often. */
async function readWhy() {
  isAsking = true;
  await new Promise((resolve) => setTimeout(resolve, WHY_PAUSE));
  isAsking = false;
  const [why] = await Promise.all([waits() ? insist(() => ask(`${PATH}/why`)) : undefined, readOffered()]);
  shown.why = why ?? null;
  await Promise.all([readEnded(), readFailed()]);
  openNamed();
  soon();
}

/** Opens the log that the address names, once its replica is known. */
function openNamed() {
  const route = requestedLog && replica(requestedLog);
  if (!route) return;
  requestedLog = "";
  openLog(route);
  document.getElementById("replicas-head")?.scrollIntoView();
}

async function readOffered() {
  offeredAt = Date.now();
  const answer = await insist(() => ask(`${PATH}/offered`));
  if (answer) Object.assign(shown, { offered: answer.items, missing: answer.missing, frozen: answer.frozen });
  lookAgain(shown);
}

async function readCycles(id) {
  const { items } = await ask(`/v1/rollouts/${id}/cycles?after=${shown.cycles.at(-1)?.step_no ?? 0}`);
  if (shown.rollout?.id !== id) return;
  const last = shown.cycles.at(-1)?.step_no ?? 0;
  shown.cycles.push(...items.filter((cycle) => cycle.step_no > last));
  soon();
  const isNew = items.length || (shown.rollout.spec.judge && !shown.evidence);
  if (isNew && !isPlanning) readPlan();
}

/** Reads how the rollout compares with its plan, and its requests so far. Many steps in a row cause one read. */
async function readPlan() {
  isPlanning = true;
  if (shown.plan) await new Promise((resolve) => setTimeout(resolve, PLAN_PAUSE));
  isPlanning = false;
  const id = shown.rollout?.id;
  if (!id) return;
  const path = `/v1/rollouts/${id}`;
  const isJudged = Boolean(shown.rollout.spec.judge);
  const [plan, evidence] = await Promise.all([
    insist(() => ask(`${path}/plan`)), isJudged ? insist(() => ask(`${path}/evidence`)) : undefined,
  ]);
  if (shown.rollout?.id !== id) return;
  Object.assign(shown, { plan: plan ?? null, evidence: evidence ?? null });
  plannedAt = Date.now();
  soon();
}

async function readRollout(id) {
  const answer = await ask(`/v1/rollouts/${id}`);
  if (shown.rollout?.id > id) return;
  showRollout(answer);
  await readCycles(id);
}

function showRollout(answer) {
  if (answer?.id !== shown.rollout?.id) Object.assign(shown, { cycles: [], plan: null, evidence: null });
  shown.rollout = answer;
}

function note(record) {
  const isSame = (other) => other.created_at === record.created_at && other.phase === record.phase && other.message === record.message;
  const place = shown.records.findIndex(isSame);
  if (place >= 0) shown.records.splice(place, 1);
  shown.records.unshift(record);
  shown.records.length = Math.min(shown.records.length, 4 * RECORDS);
  const { rollout_id: id } = record;
  if (record.actor !== record.phase) readDocument();
  if (id && shown.rollout?.id !== id && !shown.deployment?.rollout && isNewer(id)) insist(() => readRollout(id));
  soon();
}

/** Reads revisions and entrances again after a command, which may have changed them. Many commands in a row cause one read. */
async function readDocument() {
  if (isReading) return;
  isReading = true;
  await new Promise((resolve) => setTimeout(resolve, WHY_PAUSE));
  isReading = false;
  shown.document = (await insist(() => ask(PATH))) ?? shown.document;
  soon();
}

/** Whether a rollout began after the shown one and has ended already, so that this page never saw it under way. */
function isNewer(id) {
  return !shown.rollout || id > shown.rollout.id; // ids begin with the time
}

async function refresh() {
  const before = [...shown.records];
  try {
    const [document, records, newest] = await Promise.all([
      ask(PATH), ask(`${PATH}/history?limit=${RECORDS}`), readRollouts(),
    ]);
    const meanwhile = shown.records.filter((record) => !before.includes(record));
    Object.assign(shown, { document, records: [...records.items], fault: "" });
    meanwhile.reverse().forEach(note);
    if (!shown.deployment || !isOlder(document, shown.deployment)) {
      showRollout(document.rollout ?? newest);
      take(document);
    }
    const last = shown.rollout;
    if (last && last.steps !== shown.cycles.at(-1)?.step_no) await readCycles(last.id);
  } catch (error) {
    if (!isFinal(error)) throw error;
    const { message, values } = await ask(PATH).then(() => error, (own) => own); // the refusal that names similar deployments
    Object.assign(shown, { fault: message, near: values?.near?.split(", ") ?? [] });
    soon();
  }
}

/** Reads deployments without a first answer again: their counts and times change without an event. */
async function readUnproven() {
  unprovenAt = Date.now();
  const deployment = await insist(() => ask(PATH));
  if (deployment) take(deployment);
}

/** Reads the counts of proxies, which change all the time and send no event. */
async function readCallers() {
  callersAt = Date.now();
  const before = shown.callers;
  shown.callers = (await insist(() => ask(`${PATH}/requests`))) ?? before;
  if (shown.callers?.losses && !before?.losses) say(`${NAME} loses requests: ${shown.callers.losses}`);
  soon();
}

offerButtons(() => ({ ...shown, ...choices(shown.document?.revisions ?? [], shown.deployment) }), refresh);
offerRevisions(soon);
offerRollouts(soon);
offerEnded(soon);
offerHistory(() => shown.records, soon);
offerLogs(replica, live, soon);
document.getElementById("legend").append(...legend());
setInterval(() => {
  if (document.visibilityState !== "visible") return;
  tick();
  if (shown.deployment && Date.now() - offeredAt > OFFERED_PAUSE) readOffered().then(soon);
  if (shown.deployment && Date.now() - callersAt > CALLERS_PAUSE) readCallers();
  if (shown.deployment?.unproven && Date.now() - unprovenAt > REQUESTS_PAUSE) readUnproven();
  if (!shown.deployment?.rollout) return;
  soon();
  if (shown.plan && !isPlanning && Date.now() - plannedAt > REQUESTS_PAUSE) readPlan();
}, 1000);
follow((kind, document) => {
  const name = kind === "history" ? document.deployment : document.name;
  if (name !== NAME) return;
  if (kind === "history") note(document);
  else take(document);
}, refresh);
