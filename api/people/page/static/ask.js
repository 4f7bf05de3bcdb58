// The buttons of a deployment, each of which asks for a reason before anything is done.
import { h } from "./dom.js";
import { ask } from "./stream.js";
import { duration, picture, say } from "./words.js";

const dialog = document.getElementById("ask");
const form = document.getElementById("ask-form");
const wrong = document.getElementById("ask-wrong");
const plan = document.getElementById("ask-plan");
const MOST_WAVES = 6;

/** A row of what the server offers this person now. */
export function buttons(deployment, offered) {
  if (!offered.length) return null;
  const made = offered.map(({ verb, label }) =>
    h("button", { "data-ask": verb, "data-key": verb, class: verb === deployment.waits_for ? "primary" : null, type: "button" }, label));
  return h("div", { class: "buttons", role: "group", "aria-label": "What you can do", "data-key": "buttons" }, made);
}

/** Opens the dialog when a button is pressed. `shown()`: what the page knows; `refresh()`: read it anew. */
export function offerButtons(shown, refresh) {
  document.addEventListener("click", (event) => {
    const name = event.target.closest("[data-ask]")?.dataset.ask;
    const offer = shown().offered.find(({ verb }) => verb === name);
    if (offer) open(offer, shown());
  });
  form.elements.revision.addEventListener("change", () => showPlan(shown().deployment.name));
  form.elements.desired_replicas.addEventListener("input", () => showPlan(shown().deployment.name));
  document.getElementById("ask-no").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => document.activeElement === document.body && document.getElementById("main").focus());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    press(shown().deployment.name, refresh);
  });
}

function open({ verb, label, what, fields }, { deployment, document: whole }) {
  const title = label.replace(" …", "");
  dialog.dataset.button = verb;
  document.getElementById("ask-head").textContent = `${title}: ${deployment.name}`;
  document.getElementById("ask-what").textContent = what;
  document.getElementById("ask-do").textContent = title;
  for (const field of form.querySelectorAll("[data-for]")) {
    field.hidden = !fields.includes(field.dataset.for);
    for (const input of field.querySelectorAll("input, select")) input.disabled = field.hidden;
  }
  const others = (whole?.revisions ?? []).filter((revision) => revision.name !== deployment.current_revision);
  form.elements.revision.replaceChildren(...others.map((revision) => h("option", { value: revision.name }, revision.name)));
  form.elements.desired_replicas.value = deployment.desired_replicas;
  form.elements.reason.value = "";
  // pressed twice, or sent again after a break, it is done once
  form.elements.request_id.value = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  wrong.textContent = "";
  plan.replaceChildren();
  showPlan(deployment.name);
  dialog.showModal();
  (form.querySelector(".field:not([hidden]) :is(select, input)")).focus();
}

/** What the button will do, before it is pressed. The last question counts: answers may overtake each other. */
async function showPlan(deployment) {
  const fields = [...form.querySelectorAll("[data-for] :is(select, input):enabled")].map((field) => [field.name, field.value]);
  const asked = new URLSearchParams([["command", dialog.dataset.button], ...fields]).toString();
  plan.dataset.asked = asked;
  wrong.textContent = "";
  if (fields.some(([, value]) => !value)) return plan.replaceChildren();
  try {
    const found = await ask(`/v1/deployments/${encodeURIComponent(deployment)}/plan?${asked}`);
    if (plan.dataset.asked === asked) plan.replaceChildren(...planned(found));
  } catch (error) {
    if (plan.dataset.asked !== asked) return;
    plan.replaceChildren();
    wrong.textContent = error.message;
  }
}

function planned(found) {
  const took = found.seconds && [found.seconds.p50, found.seconds.p90].map((seconds) => duration(1000 * seconds));
  const span = took && (took[0] === took[1] ? took[0] : `${took[0]} to ${took[1]}`);
  const learned = span ? `Takes ${span}, as past replicas took.` : "How long it takes is not learned yet.";
  const time = found.waves.length ? learned : "No replica moves.";
  const waves = found.waves.slice(0, MOST_WAVES).map((wave) => h("li", {}, picture(wave.picture), h("span", {}, wave.why)));
  const more = found.waves.length > MOST_WAVES ? h("li", { class: "dim" }, `and ${found.waves.length - MOST_WAVES} more`) : null;
  return [
    h("strong", {}, found.guarantee), h("span", { class: "dim" }, ` ${time}`),
    h("ol", {}, waves, more),
    ...found.warnings.map((warning) => h("p", { class: "warning" }, warning)),
  ];
}

async function press(deployment, refresh) {
  const name = dialog.dataset.button;
  const button = document.getElementById("ask-do");
  button.disabled = true;
  wrong.textContent = "";
  try {
    const path = `/deployments/${encodeURIComponent(deployment)}/${name}`;
    const answer = await fetch(path, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (!answer.ok) {
      wrong.textContent = (await answer.json()).detail;
      return;
    }
    dialog.close();
    say(`${button.textContent}: done`);
    await refresh();
  } catch {
    wrong.textContent = "The server did not answer. Press it again: it is done once, however often it is sent.";
  } finally {
    button.disabled = false;
  }
}
