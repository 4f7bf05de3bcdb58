// The list of deployments: those that lose requests on top, then those that wait for a person or are in trouble, then all others.
import { buttons, isOfHost, offerButtons } from "./ask.js";
import { h, morph, morphChildren } from "./dom.js";
import { drawCounts, kindOf } from "./sections/counts.js";
import { newDeployment, showMade } from "./sections/made.js";
import { arrange, drawColumns, orderOf, place, textOf } from "./sections/order.js";
import { goBack, keepAddress, keepPlace } from "./sections/return.js";
import { ENDS, readSettings } from "./sections/settings.js";
import { ask, follow, insist } from "./stream.js";
import { isOlder, legend, picture, revisionWords, rolledBack, say, serving, setClock, since, tick } from "./words.js";

const FIRST = 100;
const REST = 500;
const deployments = new Map();
const rows = new Map();
const changedNames = new Set();
const FRAME = 8; // milliseconds of drawing, so that the page answers clicks at once
const SETTINGS_PAUSE = 30_000;
const COUNT_PAUSE = 100; // while there is more to draw
let isDrawing = false;
let countedAt = 0;
const filter = document.getElementById("filter");
const query = new URLSearchParams(location.search);
let only = query.get("only") ?? "";
let order = orderOf(query.get("sort") ?? "");
filter.value = query.get("q") ?? "";
let isRead = false;
let steered = ""; // the deployment in whose row a button was pressed
const maySteer = document.body.dataset.role !== "viewer";
const LOSSES_PAUSE = 10_000;
const shown = { offered: [], deployment: null };
let losses = new Map();
const lists = {
  losing: document.getElementById("losing-rows"),
  waiting: document.getElementById("waiting-rows"), trouble: document.getElementById("trouble-rows"), rest: document.getElementById("rows"),
};

function row(deployment) {
  const { name, waits_for: verb } = deployment;
  const loss = losses.get(name);
  const words = `${verb.charAt(0).toUpperCase()}${verb.slice(1)}`;
  const act = verb && maySteer ? h("button", { type: "button", class: "primary", "data-ask": verb, "data-of": name, "aria-label": `${words} ${name} …` }, `${words} …`) : null;
  return h(
    "div",
    { class: `row ${loss ? "bad" : deployment.tone}`, role: "row", "data-key": name },
    h("span", { role: "cell", class: "name" }, h("a", { href: `/deployments/${encodeURIComponent(name)}` }, name)),
    h("span", { role: "cell", class: "state" }, h("span", { class: "badge" }, loss ? "losing requests" : deployment.word)),
    since(deployment.phase_started_at, " ", { role: "cell", class: "age" }),
    h("span", { role: "cell", class: "replicas" }, picture(deployment.picture), h("span", { class: "count" }, serving(deployment))),
    h("span", { role: "cell", class: "revision" }, revisionWords(deployment), " ", rolledBack(deployment)),
    h("span", { role: "cell", class: act ? "why acts" : "why", title: loss ?? deployment.said }, act ? [h("span", {}, loss ?? deployment.said), act] : loss ?? deployment.said),
  );
}

/** The deployment for the counts: one that loses requests counts as failing, whatever its state. */
const counted = (deployment) => (losses.has(deployment.name) ? { ...deployment, tone: "bad" } : deployment);

function isShown(deployment) {
  if (only && kindOf(counted(deployment)) !== only) return false;
  const wanted = filter.value.trim().toLowerCase();
  if (!wanted) return true;
  const text = `${deployment.name} ${deployment.word} ${revisionWords(deployment)} ${losses.get(deployment.name) ?? ""} ${deployment.said}`.toLowerCase();
  return text.includes(wanted);
}

/** The list of a deployment: failing requests come before everything else. */
function listOf({ name, waits_for, tone }) {
  if (losses.has(name)) return "losing";
  if (waits_for) return "waiting";
  return tone === "bad" ? "trouble" : "rest";
}

/** Draws changed rows, as many as a frame has time for. */
function draw() {
  const began = performance.now();
  for (const name of changedNames) {
    if (performance.now() - began > FRAME) break;
    changedNames.delete(name); // first, so that a row that fails does not block the others
    drawRow(name);
  }
  if (changedNames.size && began - countedAt < COUNT_PAUSE) return;
  countedAt = began;
  count();
}

function drawRow(name) {
  const deployment = deployments.get(name);
  let element = rows.get(name);
  if (!deployment) {
    element?.remove();
    rows.delete(name);
    return;
  }
  const made = row(deployment);
  if (element) morph(element, made);
  else rows.set(name, (element = made));
  element.hidden = !isShown(deployment);
  place(deployment, element, lists[listOf(deployment)], order);
}

function frame() {
  try {
    draw();
  } finally {
    isDrawing = changedNames.size > 0;
    if (isDrawing) requestAnimationFrame(frame);
    else if (isRead) goBack(rows);
  }
}

function soon(name) {
  changedNames.add(name);
  if (!isDrawing) requestAnimationFrame(frame);
  isDrawing = true;
}

function count() {
  const parts = { losing: 0, waiting: 0, trouble: 0, rest: 0 };
  for (const deployment of deployments.values()) {
    parts[listOf(deployment)] += isShown(deployment) ? 1 : 0;
  }
  const chosen = drawCounts([...deployments.values()].map(counted), only);
  for (const part of ["losing", "waiting", "trouble"]) document.getElementById(part).hidden = !parts[part];
  const none = document.getElementById("none");
  none.hidden = Object.values(parts).some(Boolean);
  document.getElementById("columns").hidden = !none.hidden;
  const wanted = filter.value.trim();
  const among = only ? `“${chosen}”` : deployments.size;
  if (!deployments.size) none.textContent = "No deployment yet: New deployment makes one of a template, and Apply of a file, as 'rollway apply -f FILE' does.";
  else if (wanted) none.textContent = `None of ${among} has “${wanted}” in its name, state, revision or reason.`;
  else none.textContent = `None of ${deployments.size} is shown, since only ${among} is chosen.`;
}

/** Filters the list by this kind, or shows all again; the address keeps it. */
function choose(kind) {
  only = kind === only ? "" : kind;
  sift();
}

/** Sorts by a column, or in reverse; the address keeps it. */
function sortBy(by) {
  order = { by, isDown: by === order.by && !order.isDown };
  drawColumns(order);
  for (const list of Object.values(lists)) arrange(list, deployments, order);
  sift();
}

/** Opens the only deployment that the filter leaves. */
function openOnly() {
  const remaining = [...rows.values()].filter((element) => !element.hidden);
  if (remaining.length === 1) remaining[0].querySelector("a").click();
}

function sift() {
  keepAddress({ only, q: filter.value.trim(), sort: textOf(order) });
  for (const [name, element] of rows) element.hidden = deployments.has(name) && !isShown(deployments.get(name));
  count();
}

function take(deployment) {
  const previous = deployments.get(deployment.name);
  if (previous && isOlder(deployment, previous)) return;
  setClock(deployment.now);
  if (deployment.waits_for && !previous?.waits_for && previous) {
    say(`${deployment.name} waits for you to ${deployment.waits_for} it`);
  }
  if (previous && previous.tone !== "bad" && deployment.tone === "bad") say(`${deployment.name} is ${deployment.word}: ${deployment.said}`);
  if (deployment.lifecycle === "destroyed") deployments.delete(deployment.name);
  else deployments.set(deployment.name, deployment);
  soon(deployment.name);
}

async function refresh(answer) {
  if (answer) readOffered();
  if (answer && steered) document.querySelector(`#waiting [data-of]:not([data-of="${CSS.escape(steered)}"])`)?.focus(); // the next one
  if (answer?.documents) showMade(document.getElementById("made"), answer.documents);
  readSettings(shown.offered);
  readLosses();
  const names = new Set();
  const before = [...deployments.values()];
  for (let path = `/v1/deployments?limit=${FIRST}`; path; ) {
    const { items, next } = await ask(path);
    for (const deployment of items) {
      names.add(deployment.name);
      take(deployment);
    }
    path = next && `/v1/deployments?limit=${REST}&cursor=${encodeURIComponent(next)}`;
  }
  for (const earlier of before) { // except those that were created while the list was read
    if (names.has(earlier.name) || deployments.get(earlier.name) !== earlier) continue;
    deployments.delete(earlier.name);
    soon(earlier.name);
  }
  if (!names.size) count();
  isRead = true;
  if (!isDrawing) goBack(rows);
}

/** Reads deployments without a first answer again: their counts and times change without an event. */
function readUnproven() {
  for (const { name, unproven } of deployments.values()) {
    if (unproven) insist(() => ask(`/v1/deployments/${encodeURIComponent(name)}`).then(take));
  }
}

/** Reads the deployments that lose requests: proxies count all the time, and no event says so. */
async function readLosses() {
  const answer = await insist(() => ask("/v1/losing"));
  const before = losses;
  losses = new Map((answer?.items ?? []).map(({ deployment, sentence }) => [deployment, sentence]));
  for (const [name, sentence] of losses) if (!before.has(name)) say(`${name} loses requests: ${sentence}`);
  for (const name of new Set([...before.keys(), ...losses.keys()])) {
    if (before.get(name) !== losses.get(name)) soon(name);
  }
}

const fixedBy = ({ ask: verb, name }) => (name ? { [ENDS[verb]]: name } : {});
/** What a button can do for the deployment of its row, or for the fleet. */
async function contextOf({ dataset }) {
  const { of: name } = dataset;
  steered = name ?? "";
  if (!name) return { ...shown, fixed: fixedBy(dataset), choices: { names: [...deployments.keys()].sort() } };
  const { items, missing } = await ask(`/v1/deployments/${encodeURIComponent(name)}/offered`);
  return { offered: items, missing, deployment: deployments.get(name) };
}

/** Reads the buttons of the list again: there may be more to remove. */
const readOffered = () => insist(async () => {
  const offered = (await ask("/v1/offered")).items.filter((button) => !isOfHost(button));
  shown.offered = [...await newDeployment(offered, (name) => deployments.has(name)), ...offered];
  const own = shown.offered.filter(({ verb }) => !(verb in ENDS));
  morphChildren(document.getElementById("offered"), h("div", {}, buttons(own, "new")));
  readSettings(shown.offered);
});

offerButtons(contextOf, refresh);
readOffered();
keepPlace();
drawColumns(order);
filter.addEventListener("input", sift);
filter.addEventListener("keydown", (event) => event.key === "Enter" && openOnly());
document.addEventListener("click", ({ target }) => target.dataset?.only && choose(target.dataset.only));
document.addEventListener("click", ({ target }) => target.dataset?.sort && sortBy(target.dataset.sort));
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, select, textarea, dialog")) return;
  event.preventDefault();
  filter.focus();
});
document.getElementById("legend").append(...legend());
setInterval(() => {
  if (document.visibilityState !== "visible") return;
  tick();
  readUnproven();
}, 5000);
setInterval(() => document.visibilityState === "visible" && readLosses(), LOSSES_PAUSE);
setInterval(() => document.visibilityState === "visible" && readSettings(shown.offered), SETTINGS_PAUSE); // they send no events
follow((kind, document) => kind === "deployment" && take(document), refresh);
