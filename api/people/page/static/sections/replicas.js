// The replicas of a deployment, each with its shape, its word and its log.
import { h } from "../dom.js";
import { ask, insist } from "../stream.js";
import { shape, shortId, since, symbolOf } from "../words.js";
import { isPrinted, logButton, printed } from "./logs.js";

const PATH = `/v1/deployments/${encodeURIComponent(document.body.dataset.deployment)}/routes`;
const ENDED = 50;
let ended = null;

/** The ended replicas, newest first; null until they are read. */
export const endedReplicas = () => ended;

/** Reads the ended replicas, if their section is unfolded. */
export async function readEnded() {
  if (!document.getElementById("ended")?.open) return;
  const answer = await insist(() => ask(`${PATH}?gone=true&limit=${ENDED}`));
  ended = (answer?.items ?? []).filter((route) => route.stopped_at).reverse();
}

/** Reads a section when it is unfolded. `draw()`: draws the page again. */
export function offerEnded(draw) {
  document.addEventListener("toggle", ({ target }) => target.id === "ended" && readEnded().then(draw), true);
}

/** Whether its probes fail while its callers still get answers. */
function isAnswering({ status, kept_until, status_changed_at }) {
  return status === "unhealthy" && Date.parse(kept_until) > Date.parse(status_changed_at);
}

function routeCard(route) {
  const symbol = symbolOf(route);
  const word = symbol === "□" ? "healthy, no traffic" : `${route.status}${isAnswering(route) ? ", but answering" : ""}`;
  const reason = route.status === "healthy" ? null : h("span", { class: "reason" }, route.reason);
  return h(
    "li",
    { class: `route ${route.status}`, "data-key": route.id },
    h("span", { class: "status" }, symbol ? shape(symbol) : h("i", { class: "shape gone" }), word),
    h("span", { class: "revision" }, route.revision),
    h("code", { title: route.id }, shortId(route.id)),
    h("span", { class: "address" }, route.address ?? "no address yet"),
    h("span", { class: "host" }, `${route.host ?? "no host yet"}, `, since(route.status_changed_at, " ")),
    logButton(route),
    reason,
  );
}

/** A replica, with its log below it if that is open. */
const withLog = (route) => [routeCard(route), isPrinted(route) ? h("li", { class: "opened", "data-key": "opened" }, printed()) : null];

/** The ended replicas, in a folded section. */
function endedOnes() {
  const none = ended?.length ? null : h("p", { class: "empty" }, ended ? "No longer on record." : "Loading …");
  return h(
    "details",
    { id: "ended", class: "fold", "data-key": "ended" },
    h("summary", {}, "Stopped replicas"),
    h("ul", { class: "routes" }, (ended ?? []).map(withLog)),
    none,
  );
}

/** The section. */
export function replicas(deployment) {
  const cards = deployment.routes.map(withLog);
  const isShown = [...deployment.routes, ...(ended ?? [])].some(isPrinted);
  const none = cards.length ? null : h("p", { class: "empty" }, "None.");
  return h(
    "section",
    { class: "card", "aria-labelledby": "replicas-head", "data-key": "replicas" },
    h("h2", { id: "replicas-head" }, "Replicas"),
    h("ul", { class: "routes", "data-key": "live" }, cards),
    none,
    endedOnes(),
    isShown ? null : printed(),
  );
}
