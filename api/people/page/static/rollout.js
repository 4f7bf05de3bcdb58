// The page of a rollout, under way or ended, or from its receipt alone once its rows are deleted.
import { h, morphChildren } from "./dom.js";
import { curves } from "./sections/evidence.js";
import { receiptCard } from "./sections/receipt.js";
import { rollout } from "./sections/rollout.js";
import { ask, follow, insist, isFinal } from "./stream.js";
import { legend, setClock, tick } from "./words.js";

const { deployment: NAME, rollout: ID } = document.body.dataset;
const PATH = `/v1/rollouts/${encodeURIComponent(ID)}`;
const PAUSE = 1000;
const SEALED_PAUSE = 10_000;
let shown = null;
let fault = "";
let isAsked = false;
let readAt = 0;

function draw() {
  const made = shown
    ? [rollout(shown.rollout, shown.cycles, shown.plan, shown.deployment, shown.log), curves(shown.evidence), shown.sealed ? receiptCard(shown.sealed) : null]
    : [h("p", { class: "why warn" }, fault || "Loading …")];
  morphChildren(document.getElementById("rollout"), h("div", {}, made));
}

async function refresh() {
  try {
    shown = await read();
  } catch (error) {
    if (!isFinal(error)) throw error;
    fault = error.message;
  }
  readAt = Date.now();
  draw();
}

async function read() {
  const [deployment, answer] = await Promise.all([ask(`/v1/deployments/${encodeURIComponent(NAME)}`), unlessForgotten(PATH)]);
  setClock(deployment.now);
  const sealed = answer && !answer.outcome ? null : await ask(`${PATH}/receipt`);
  if ((answer ?? sealed.receipt).deployment !== NAME) throw Object.assign(new Error(`This is no rollout of ${NAME}.`), { status: 404 });
  if (!answer) return { deployment, sealed, ...ofReceipt(sealed.receipt) };
  const [{ items: cycles }, plan, evidence] = await Promise.all([
    ask(`${PATH}/cycles`), ask(`${PATH}/plan`), answer.spec.judge ? ask(`${PATH}/evidence`) : null,
  ]);
  return { deployment, sealed, rollout: answer, cycles, plan, evidence, log: await failedLog(answer) };
}

/** The answer; null if the rows of the rollout are deleted, which its receipt outlives. */
async function unlessForgotten(path) {
  try {
    return await ask(path);
  } catch (error) {
    if (error.status !== 404) throw error;
    return null;
  }
}

/** A link to the log of the replica that failed last; null without permission. */
async function failedLog({ failed_routes: failed, to_revision: to }) {
  if (!failed || document.body.dataset.logs !== "shown") return null;
  const { last_failed: route } = await ask(`/v1/deployments/${encodeURIComponent(NAME)}/routes`);
  if (route?.revision !== to || !route.host || route.host === "external") return null;
  return h("a", { href: `/deployments/${encodeURIComponent(NAME)}?log=${route.id}` }, "Log of the replica that failed");
}

/** The rollout of a receipt, in the form of its rows. */
function ofReceipt({ from, to, policy, waves, requests, failed_replicas: failed, ...rest }) {
  const moves = (wave) => ["create", "promote", "drain", "park"].filter((what) => wave[what]).map((what) => `${what} ${wave[what]}`).join(", ");
  return {
    rollout: { ...rest, ...policy, from_revision: from, to_revision: to, failed_routes: failed },
    cycles: waves.map((wave) => ({ step_no: wave.number, at: wave.at, picture: wave.picture, did: moves(wave) || wave.verdict.replaceAll("_", " "), why: wave.why })),
    plan: { waves: [], deviations: [], requests: requests.said },
    evidence: null,
  };
}

/** Reads again. Many changes in a row cause one read. */
async function again() {
  if (isAsked) return;
  isAsked = true;
  await new Promise((resolve) => setTimeout(resolve, PAUSE));
  isAsked = false;
  await insist(refresh);
}

document.getElementById("legend").append(...legend());
setInterval(() => {
  if (document.visibilityState !== "visible") return;
  tick();
  if (!shown) return;
  const isSealed = shown.sealed?.seal;
  if (!shown.rollout.outcome) draw();
  else if (!isSealed && Date.now() - readAt > SEALED_PAUSE) again();
}, 1000);
follow((kind, document) => {
  if (kind === "deployment" && document.name === NAME && shown && !shown.rollout.outcome) again();
}, refresh);
