// The replicas of a deployment, each with its shape and its word.
import { h } from "./dom.js";
import { shape, since, symbolOf } from "./words.js";

function routeCard(route) {
  const symbol = symbolOf(route);
  const word = symbol === "□" ? "healthy, no traffic" : route.status;
  const reason = route.status === "healthy" ? null : h("span", { class: "reason" }, route.reason);
  return h(
    "li",
    { class: `route ${route.status}`, "data-key": route.id },
    h("span", { class: "status" }, symbol ? shape(symbol) : h("i", { class: "shape gone" }), word),
    h("span", { class: "revision" }, route.revision),
    h("code", { title: route.id }, route.id.replaceAll("-", "").slice(-8)),
    h("span", { class: "address" }, route.address ?? "no address yet"),
    h("span", { class: "host" }, `${route.host ?? "no host yet"}, `, since(route.status_changed_at, " ")),
    reason,
  );
}

/** The section. */
export function replicas(deployment) {
  const cards = deployment.routes.map(routeCard);
  const none = cards.length ? null : h("p", { class: "empty" }, "None.");
  return h(
    "section",
    { class: "card", "aria-labelledby": "replicas-head", "data-key": "replicas" },
    h("h2", { id: "replicas-head" }, "Replicas"),
    h("ul", { class: "routes" }, cards),
    none,
  );
}
