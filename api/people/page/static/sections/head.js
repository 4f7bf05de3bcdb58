// The head of a deployment: its state, its wait, and its addresses.
import { h } from "../dom.js";
import { clock, picture, revisionWords, rolledBack, serving, since } from "../words.js";

const GONE = new Set(["destroying", "destroyed"]);

/** Its name and state. */
export function head(deployment, isLosing) {
  return h(
    "div",
    { class: `head ${isLosing ? "bad" : deployment.tone}` },
    h("h1", {}, deployment.name),
    h("span", { class: "badge" }, deployment.word),
    h("span", { class: "dim" }, since(deployment.phase_started_at, " ")),
    h("span", { class: "replicas" }, picture(deployment.picture), h("span", { class: "count" }, `${serving(deployment)} serving`)),
    h("span", { class: "revision" }, revisionWords(deployment)),
    rolledBack(deployment),
  );
}

/** The failing requests, with a link to their curve; null if none fails. */
export function lost(sentence) {
  if (!sentence) return null;
  return h("p", { class: "why bad" }, h("strong", {}, "Losing requests: "), `${sentence}. `, h("a", { href: "#callers-head" }, "Curves"));
}

/** The freeze that holds the deployment; null without one. */
export function freeze(frozen) {
  if (!frozen) return null;
  const reason = frozen.reason ? `: “${frozen.reason}”` : "";
  return h("p", { class: "why warn", "data-key": "freeze" }, h("strong", {}, "Frozen until ", clock(frozen.until)), ` by the freeze ${frozen.freeze}${reason}. No rollout begins; what leads back is never frozen.`);
}

/** What it waits for, each fact once. `why`: the answer of `/v1/deployments/NAME/why`; null until it is there. */
export function sentence(deployment, why, log = null) {
  const { waits_for: verb, said, reason } = deployment;
  const waiting = `Waits for you to ${verb} it. ${deployment.maintenance}`.trimEnd();
  const isExplained = Boolean(why) && said === reason; // the explanation contains the reason
  const first = verb ? h("strong", {}, `${waiting} `) : isExplained ? null : said + (why ? ". " : "");
  const retry = deployment.retry_at && !why ? h("span", {}, " Tried again in ", since(deployment.retry_at, " "), ".") : null;
  if (!first && !retry && !why) return null;
  const upper = (line) => `${line[0].toUpperCase()}${line.slice(1)}.`;
  const evidence = (why?.evidence ?? []).map((line) => h("span", { class: "evidence" }, upper(line)));
  return h("p", { class: `why ${deployment.tone}` }, first, retry, why ? h("span", { class: first ? "dim" : null }, verb ? upper(why.brief) : `${why.brief}.`) : null, " ", log, evidence);
}

/** Addresses and certificates, and changes of them that its rollout brings. */
export function reached(document) {
  if (!document || GONE.has(document.lifecycle)) return null;
  const ways = document.entrances.map(({ value }) => value).join(", ");
  const links = document.urls.map((url) => [h("a", { href: url }, url), " "]);
  const wanted = (document?.certificates ?? []).filter(({ is_wanted: isWanted }) => isWanted);
  if (!ways) return null;
  return h("p", { class: "dim reached" }, "Reached at ", links.length ? [links, "(", h("code", {}, ways), ")"] : h("code", {}, ways), ...wanted.map(certificate), document.brings ? `; ${document.brings}` : "");
}

function certificate({ kind, name, not_after: until, fault }) {
  const who = kind === "callers" ? "authorities of callers" : `certificate ${name ? `of ${name}` : "of its own"}`;
  const validity = until ? ` until ${until.slice(0, 10)}` : fault ? "" : " is to come";
  return h("span", { class: fault ? "warn" : "" }, `; ${who}${kind === "callers" ? "" : validity}${fault ? `: ${fault}` : ""}`);
}
