// The buttons of a page. Each opens a dialog with its plan and a field for the reason, before anything is done.
import { h } from "./dom.js";
import { inputs, said } from "./fields.js";
import { fieldsFrom, sourceOf, valuesOf } from "./inputs/revision.js";
import { freezeInputs } from "./sections/freeze_form.js";
import { ask } from "./stream.js";
import { duration, picture, say } from "./words.js";

const dialog = document.getElementById("ask");
const form = document.getElementById("ask-form");
const wrong = document.getElementById("ask-wrong");
const plan = document.getElementById("ask-plan");
const MOST_WAVES = 6;
const TOO_MANY = 429;
const TYPING = 600;
const DANGER = new Set(["destroy"]); // shown apart, and done only after the name is typed
const RISKY = new Set(["abort", "drain", "forget"]);
/** Dialogs with a form of their own. */
const FORMS = { "set-freeze": freezeInputs };
const unsent = new Map(); // values that were typed and not sent, by dialog
let offer = null;
let typed = null;
let asking = new AbortController();

/** Whether a button is for one host, and drawn next to it. */
export const isOfHost = ({ fields }) => fields.some(({ name }) => name === "host");

/** The buttons that the server offers this person now, by group. `waitsFor`: the verb that a deployment waits for; `whose`: the host of the buttons. */
export function buttons(offered, waitsFor = "", whose = "") {
  if (!offered.length) return null;
  const kind = (verb) => (verb === waitsFor ? "primary" : DANGER.has(verb) ? "danger" : RISKY.has(verb) ? "risky" : null);
  const made = ({ verb, label }) => h("button", { "data-ask": verb, "data-key": verb, class: kind(verb), type: "button" }, label);
  const groups = [...new Set(offered.map(({ group }) => group))];
  const rows = groups.map((group) => {
    const own = offered.filter((button) => button.group === group).map(made);
    return group ? h("div", { class: "group", role: "group", "aria-label": group, "data-key": group }, h("span", { class: "dim" }, group), h("div", {}, own)) : own;
  });
  return h("div", { class: "buttons", role: "group", "aria-label": whose ? `What you can do with ${whose}` : "What you can do", "data-key": "buttons" }, rows);
}

/** The reasons of missing buttons, and the way past each. */
export function missing(absent) {
  if (!absent.length) return null;
  const title = ({ label }) => label.replace(" …", "");
  const past = (button, words) => h("button", { type: "button", class: "quiet", "data-ask": button.verb, "aria-label": `${title(button)}: ${button.way} …` }, words);
  const line = ([key, all]) => {
    const [{ reason, way }] = all;
    const ways = !way ? null : all.length === 1 ? [" · ", past(all[0], `${way} …`)] : [` · ${way}: `, all.map((each) => past(each, each.label))];
    return h("li", { "data-key": key }, `${all.map(title).join(", ")}: ${reason}`, ways);
  };
  const alike = Map.groupBy(absent, ({ reason, way }) => `${reason} ${way}`);
  return h("ul", { class: "missing dim", "aria-label": "What you cannot do now", "data-key": "missing" }, [...alike].map(line));
}

/** Opens the dialog when a button is pressed. `shown(button)`: what the page knows; `refresh()`: reads it again. */
export function offerButtons(shown, refresh) {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-ask]");
    if (!button) return;
    const context = await shown(button);
    const { ask: verb, revision, from } = button.dataset;
    const offered = offerOf(verb, context);
    if (offered) open(revision ? { ...offered, revision, values: { ...offered.values, revision, ...button.dataset.anyway && { anyway: true } } } : { ...offered, from }, context);
  });
  form.addEventListener("input", (event) => {
    offer.isTouched = true;
    if (event.target.name === "reason") return;
    clearTimeout(typed);
    typed = setTimeout(showPlan, TYPING);
  });
  form.addEventListener("change", (event) => event.target.name === "reason" || showPlan());
  form.addEventListener("input", sayWhatItDoes);
  document.getElementById("ask-no").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", leavePlan);
  dialog.addEventListener("close", keepText);
  dialog.addEventListener("close", keepFocus);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    press(refresh);
  });
}

/** Says in an open dialog that somebody else was faster, once its command is no longer offered. */
export function lookAgain(context) {
  if (!dialog.open || !offer.place.startsWith("/deployments/") || offerOf(offer.verb, context)) return;
  const faster = context.records.find(({ result }) => result === "asked");
  const why = faster ? `${faster.actor} was faster (${faster.message})` : "Something has changed meanwhile";
  wrong.textContent = `${why}: this is no longer possible.`;
}

/** The button of a verb: as offered, or the missing one with its way past. */
export const offerOf = (verb, { offered, missing: absent = [] }) =>
  offered.find((button) => button.verb === verb) ?? absent.find((each) => each.verb === verb)?.button;

/** Keeps the keyboard's focus in the page when the pressed button is gone. */
function keepFocus() {
  if (document.activeElement === document.body) document.getElementById("main").focus();
}

/** `fixed`: the fields that are decided already, such as the host of the button. */
async function open(found, { deployment, document: whole, fixed = {}, choices = {}, failed = new Set() }) {
  const title = found.label.replace(" …", "");
  const name = deployment?.name ?? Object.values(fixed)[0];
  const source = sourceOf(found, deployment);
  const decided = source ? { values_of: source } : fixed;
  const fields = source ? fieldsFrom(found.fields) : found.fields.filter((field) => !(field.name in fixed));
  const place = deployment ? `/deployments/${encodeURIComponent(name)}/${found.verb}` : `/fleet/${found.path ?? found.verb}`;
  offer = { ...found, name, failed, fields, place, source, key: `${place} ${found.verb} ${found.revision ?? source}`, isTouched: false };
  document.getElementById("ask-head").textContent = source ? `${title} from ${source}, ${name}` : name ? `${title}${title.includes(":") ? "," : ""} ${name}` : title;
  document.getElementById("ask-as").textContent = `Acting as ${document.body.dataset.token}`;
  document.getElementById("ask-what").textContent = source ? `Change what is to differ: everything else is as in ${source}.` : found.what;
  document.getElementById("ask-do").className = DANGER.has(found.verb) || RISKY.has(found.verb) ? "danger" : "primary";
  const draw = async () => {
    const present = source ? await valuesOf(deployment, source) : await knownOf(found, deployment, whole);
    const drawn = (FORMS[found.verb] ?? inputs)(offer, { ...present, ...found.values }, choices);
    const hidden = Object.entries(decided).map(([field, value]) => h("input", { type: "hidden", name: field, value }));
    return h("div", {}, h("div", { id: "ask-confirmation" }), drawn, hidden);
  };
  const draft = unsent.get(offer.key);
  document.getElementById("ask-fields").replaceChildren(draft ? draft.fields : await draw(), draft ? beginAgain(draw) : "");
  const { reason } = form.elements;
  reason.value = draft ? draft.reason : "";
  offer.isTouched = Boolean(draft);
  reason.required = !fixed.host; // a machine is often drained in a hurry
  // sent twice, the command is still done once
  form.elements.request_id.value = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  wrong.textContent = "";
  plan.replaceChildren();
  sayWhatItDoes();
  showPlan();
  dialog.showModal();
  (fixed.host ? document.getElementById("ask-no") : firstInput() ?? reason).focus();
}

const firstInput = () => [...form.querySelectorAll("#ask-fields > div > :not(details) :is(select, input, textarea)")].find((input) => input.checkVisibility());

/** Restores typed and unsent values when their dialog is opened again. */
function keepText() {
  const fields = document.getElementById("ask-fields").firstElementChild;
  if (offer.isTouched && fields?.querySelector("textarea, table")) unsent.set(offer.key, { fields, reason: form.elements.reason.value });
  else unsent.delete(offer.key);
}

function beginAgain(draw) {
  const again = h("button", { type: "button", class: "quiet" }, "Begin again");
  const note = h("p", {}, "As you left it. ", again);
  again.addEventListener("click", async () => {
    document.getElementById("ask-fields").replaceChildren(await draw());
    offer.isTouched = false;
    showPlan();
    firstInput()?.focus();
  });
  return note;
}

/** The present values: all fields for a command that replaces all of them, else the required ones. */
async function knownOf({ verb, fields, replaces }, deployment, whole) {
  if (!deployment) return {};
  const now = { ...deployment, ...whole };
  if (replaces) return { ...now, ...await ask(`/v1/deployments/${encodeURIComponent(deployment.name)}/${verb}`) };
  return Object.fromEntries(fields.filter((field) => field.is_needed).map(({ name }) => [name, now[name]]));
}

/** Cancels the plan that is requested; the server stops computing it. */
function leavePlan() {
  clearTimeout(typed);
  asking.abort();
}

/** Shows the plan of the button, requested when a field loses focus or after a pause in typing. */
async function showPlan() {
  const request = said(form, offer);
  if (plan.dataset.asked === request.toString() && !asking.signal.aborted) return;
  leavePlan();
  asking = new AbortController();
  const { signal } = asking;
  wrong.textContent = "";
  const isWhole = offer.fields.every(({ name, is_needed: isNeeded }) => !isNeeded || request.get(name));
  plan.dataset.asked = request.toString();
  const isAhead = offer.verb === "drain";
  if (offer.source && !offer.isTouched) return plan.replaceChildren(h("span", { class: "dim" }, `Nothing differs from ${offer.source} yet.`));
  if (!(offer.is_planned || isAhead) || !isWhole) return plan.replaceChildren();
  try {
    if (isAhead) return plan.replaceChildren(...drainedAhead(await ask(`/v1/hosts/${encodeURIComponent(offer.name)}/drain`)));
    const answer = await inTurn(`${offer.place}/plan`, request, signal);
    if (!signal.aborted) plan.replaceChildren(...(answer.items ? answer.items.flatMap(applied) : [...settings(answer), ...planned(answer)]));
  } catch (error) {
    if (signal.aborted) return;
    plan.replaceChildren();
    wrong.textContent = error.detail ?? "The server did not answer.";
  }
}

function drainedAhead({ sentence, stay }) {
  return [h("p", stay.length ? { class: "warning" } : {}, `It has ${sentence}.`)];
}

function applied(result) {
  const would = result.would.length ? result.would.join("; ") : "nothing to do";
  return [h("p", {}, h("strong", {}, result.deployment), `: ${would}`), ...warnings(result.notes), ...(result.waves.length ? planned(result) : [])];
}

/** Labels the button with the chosen revision. A dangerous command, or a revision that only failed, needs its name typed first. */
function sayWhatItDoes() {
  const revision = form.elements.revision?.value || (form.elements.revision ? offer.revision : "");
  const does = offer.does.includes("{revision}") && !revision ? offer.label.replace(" …", "") : offer.does;
  document.getElementById("ask-do").textContent = does.replace("{name}", offer.name ?? "").replace("{revision}", revision);
  const name = DANGER.has(offer.verb) ? offer.name : offer.failed.has(revision) ? revision : "";
  const place = document.getElementById("ask-confirmation");
  if ((place.dataset.name ?? "") === name) return;
  place.dataset.name = name;
  place.replaceChildren(...(name ? [confirmation(name)] : []));
}

/** A field without a name, so that it is not sent; without the right word nothing is sent. */
function confirmation(name) {
  const input = h("input", { id: "ask-confirm", required: true, autocomplete: "off", pattern: name.replaceAll(/[.\-]/g, "\\$&") });
  return h("div", { class: "field" }, h("label", { for: "ask-confirm" }, `Type ${name} to confirm`), input);
}

function settings(answer) {
  return answer.would.length ? [h("p", {}, `${answer.would.join("; ")}.`)] : [];
}

function planned(answer) {
  const took = answer.seconds && [answer.seconds.p50, answer.seconds.p90].map((seconds) => duration(1000 * seconds));
  const span = took && (took[0] === took[1] ? took[0] : `${took[0]} to ${took[1]}`);
  const learned = span ? `About ${span}, judging by earlier starts.` : "No timing data yet.";
  const time = answer.waves.length ? learned : "No replica moves.";
  const waves = answer.waves.slice(0, MOST_WAVES).map((wave) => h("li", {}, picture(wave.picture), h("span", {}, wave.why)));
  const more = answer.waves.length > MOST_WAVES ? h("li", { class: "dim" }, `and ${answer.waves.length - MOST_WAVES} more`) : null;
  return [
    h("strong", {}, answer.guarantee), h("span", { class: "dim" }, ` ${time}`),
    h("ol", {}, waves, more),
    ...warnings(answer.warnings),
  ];
}

const warnings = (sentences) => sentences.map((sentence) => h("p", { class: "warning" }, sentence));

/** Requests a plan, after the one before has ended: a token has one at a time. */
async function inTurn(path, body, signal) {
  try {
    return await sent(path, body, signal);
  } catch (error) {
    if (signal.aborted || error.status !== TOO_MANY) throw error;
    await new Promise((resolve) => setTimeout(resolve, 1000 * error.values.seconds));
    return sent(path, body, signal);
  }
}

/** Sends a form of the page. Throws the document of a refusal. */
export async function sent(path, body, signal) {
  const answer = await fetch(path, { method: "POST", body, signal });
  if (!answer.ok) throw await answer.json();
  return answer.json();
}

async function press(refresh) {
  const button = document.getElementById("ask-do");
  button.disabled = true;
  wrong.textContent = "";
  try {
    const answer = await sent(offer.place, said(form, offer));
    offer.isTouched = false;
    dialog.close();
    say(`${button.textContent}: done`);
    await refresh(answer);
    keepFocus();
  } catch (error) {
    wrong.textContent = error.detail ?? "The server did not answer. Press it again: it is done once, however often it is sent.";
  } finally {
    button.disabled = false;
  }
}
