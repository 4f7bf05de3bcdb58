// The replicas of a deployment, each with its shape, its word and its log.
import { h } from "../dom.js";
import { ask, insist } from "../stream.js";
import { shape, shortId, since, symbolOf } from "../words.js";
import { isPrinted, logButton, printed } from "./logs.js";

const PATH = `/v1/deployments/${encodeURIComponent(document.body.dataset.deployment)}/routes`;
const ENDED = 50;
let ended = null;

/** Those that have ended, the newest first; null: not read yet. */
export const endedReplicas = () => ended;

/** Reads those that have ended, for who has unfolded them. */
export async function readEnded() {
  if (!document.getElementById("ended")?.open) return;
  const found = await insist(() => ask(`${PATH}?gone=true&limit=${ENDED}`));
  ended = (found?.items ?? []).filter((route) => route.stopped_at).reverse();
}

/** Listens to what is unfolded. `draw()`: what is known has changed. */
export function offerEnded(draw) {
  document.addEventListener("toggle", ({ target }) => target.id === "ended" && readEnded().then(draw), true);
}

/** Sick by its probes, which it answers no more, and not by what callers get. */
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

/** A replica, and under it its log where that is open. */
const withLog = (route) => [routeCard(route), isPrinted(route) ? h("li", { class: "opened", "data-key": "opened" }, printed()) : null];

/** Those that have ended, once somebody has unfolded them. */
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
