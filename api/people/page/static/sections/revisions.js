// The revisions of a deployment: the content of each, and its difference from the current one.
import { offerOf } from "../ask.js";
import { h } from "../dom.js";
import { ask, insist } from "../stream.js";
import { clock, since } from "../words.js";

const PATH = `/v1/deployments/${encodeURIComponent(document.body.dataset.deployment)}/revisions`;
const FIRST = 20; // the number that comes with the deployment
const MOST = 500;
const ONLY_FAILED = "never started";
const opened = new Set();
const compared = new Map();
const against = new Map(); // revision -> the revision that a person compares it with
const LONG = 300;
let all = [];
let drawn = () => {};

/** Reads a section when it is unfolded. `draw()`: draws the page again. */
export function offerRevisions(draw) {
  drawn = draw;
  document.addEventListener("toggle", ({ target }) => {
    const name = target.dataset.revision;
    if (!name) return;
    if (target.open) opened.add(name);
    else opened.delete(name);
    draw();
  }, true);
  document.addEventListener("change", ({ target }) => {
    if (!target.dataset.compared) return;
    against.set(target.dataset.compared, target.value);
    draw();
  });
  document.addEventListener("click", async ({ target }) => {
    if (target.id !== "all-revisions") return;
    all = (await insist(() => ask(`${PATH}?limit=${MOST}`)))?.items ?? all;
    draw();
  });
}

/** The revisions that can be rolled out, and the names of those that have only failed. */
export function choices(newest, { current_revision: current }) {
  const others = allRevisions(newest).filter(({ name }) => name !== current);
  const words = new Map(others.map(({ name, only_failed: isBad }) => [name, isBad ? `${name}, ${ONLY_FAILED}` : name]));
  return { choices: { revision: words }, failed: new Set(others.filter(({ only_failed: isBad }) => isBad).map(({ name }) => name)) };
}

/** The newest first. */
function allRevisions(newest) {
  const byId = new Map([...all, ...newest].map((revision) => [revision.id, revision]));
  return [...byId.values()].sort((one, other) => (one.id < other.id ? 1 : -1)); // ids begin with the time
}

/** The section. `newest`: the revisions that came with the deployment; values of variables are masked by the server. */
export function revisions(newest, { current_revision, deploying_revision: next, lifecycle }, offers) {
  if (!newest.length) return null;
  const current = lifecycle === "destroyed" ? null : current_revision;
  const rows = allRevisions(newest);
  const names = rows.map(({ name }) => name);
  const place = ({ name }) => (name === current ? "current" : name === next ? "deploying" : "");
  const isOlder = ({ id }) => id < rows.find(({ name }) => name === current)?.id;
  const more = newest.length >= FIRST && !all.length ? h("button", { type: "button", id: "all-revisions" }, "All revisions") : null;
  return h(
    "section",
    { class: "card", "aria-labelledby": "revisions-head", "data-key": "revisions" },
    h("h2", { id: "revisions-head" }, "Revisions"),
    h("ul", { class: "revisions" }, rows.map((revision) => item(revision, place(revision), otherThan(revision.name, current, names), names, [wayTo(revision, place(revision), isOlder(revision), offers), newFrom(revision, offers)]))),
    more,
  );
}

/** The button that rolls a revision out, or back if it is older than the current one. */
function wayTo({ name, only_failed: isBad }, place, isOlder, offers) {
  const verb = isOlder ? "undo" : "activate";
  if (place || !offerOf(verb, offers)) return null;
  const way = isOlder ? "" : offers.missing.find((each) => each.verb === verb)?.way;
  const label = `${isOlder ? "Roll back to this" : "Roll out this"}${way ? `, ${way}` : ""} …`;
  return h("button", { type: "button", class: "quiet", "data-ask": verb, "data-revision": name, "data-anyway": isBad && isOlder ? "true" : null, "aria-label": label.replace("this", name) }, label);
}

/** The button for a new revision that begins as a copy of this one. */
const newFrom = ({ name }, offers) => (offerOf("rolling-update", offers) ? h("button", { type: "button", class: "quiet", "data-ask": "rolling-update", "data-from": name, "aria-label": `New revision from ${name} …` }, "New revision from this …") : null);

/** The revision to compare with: the chosen one, else the current one, else the one before. */
function otherThan(name, current, names) {
  const before = names[names.indexOf(name) + 1];
  return against.get(name) ?? (current && name !== current ? current : before ?? names.find((other) => other !== name));
}

function item(revision, place, other, names, ways) {
  const { name } = revision;
  return h(
    "li",
    { "data-key": name },
    h("span", { class: "ways" }, ways),
    h(
      "details",
      { "data-revision": name },
      h(
        "summary",
        {},
        h("span", { class: "revision" }, name), " ",
        place ? h("span", { class: `badge ${place === "current" ? "good" : "moves"}` }, place) : null, " ",
        revision.only_failed ? h("span", { class: "badge bad" }, ONLY_FAILED) : null, " ",
        since(revision.created_at, "ago"), " ",
        h("span", { class: "runs" }, runs(revision.spec)),
      ),
      opened.has(name) ? [other ? difference(name, other, names) : null, content(revision)] : null,
    ),
  );
}

/** The image or the command, in short. */
function runs({ docker, command }) {
  return words([...(docker?.image ? [docker.image] : []), ...(command ?? [])]);
}

function content({ created_at: at, spec }) {
  const rows = flat(spec).map(([path, value]) => h("div", {}, h("dt", {}, path), h("dd", {}, long(value))));
  return h("div", { "data-key": "content" }, h("h3", {}, "Contents, created ", clock(at)), h("dl", { class: "content" }, rows));
}

/** Reads the difference of a pair once, since revisions never change. */
function difference(name, other, names) {
  const key = `${other} ${name}`;
  if (!compared.has(key)) {
    compared.set(key, null);
    const path = `${PATH}/${encodeURIComponent(other)}/difference?other=${encodeURIComponent(name)}`;
    insist(() => ask(path)).then((answer) => {
      compared.set(key, answer ? changes(answer) : []);
      drawn();
    });
  }
  const lines = compared.get(key);
  const line = ([kind, path, value]) => h("li", {}, h(kind, {}, kind === "del" ? "- " : "+ ", `${path}: `, long(value)));
  const said = lines?.length ? h("ul", { class: "difference" }, lines.map(line)) : h("p", { class: "dim" }, lines ? "No difference." : "Loading …");
  const option = (each) => h("option", { value: each, selected: each === other }, each);
  const choice = h("select", { "data-compared": name, "data-key": `with ${other}`, "aria-label": `Compare ${name} with` }, names.filter((each) => each !== name).map(option));
  return h("div", { "data-key": "difference" }, h("h3", {}, "Compared with ", choice), said);
}

/** Folds a value of thousands of letters. */
function long(value) {
  if (value.length <= LONG) return value;
  return h("details", { class: "long" }, h("summary", {}, `${value.slice(0, LONG)}… `, h("span", { class: "dim" }, `${value.length} letters`)), value);
}

/** Pairs of removed and added values, by path. */
function changes({ before, after, hidden }) {
  const [old, now] = [before, after].map(({ spec, wire }) => new Map(flat({ ...spec, traffic: wire })));
  for (const name of hidden) now.set(`env.${name}`, "*** (another value)");
  const paths = [...new Set([...old.keys(), ...now.keys()])].filter((path) => old.get(path) !== now.get(path));
  return paths.flatMap((path) => [
    ...(old.has(path) ? [["del", path, old.get(path)]] : []), ...(now.has(path) ? [["ins", path, now.get(path)]] : []),
  ]);
}

/** {a: {b: 1}, c: null} -> [["a.b", "1"]] */
function flat(value, path = "") {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value.length ? [[path, value.every((part) => typeof part === "string") ? words(value) : JSON.stringify(value)]] : [];
  if (typeof value !== "object") return [[path, String(value)]];
  return Object.entries(value).flatMap(([name, part]) => flat(part, path ? `${path}.${name}` : name));
}

const words = (list) => list.map((word) => (/[\s"'\\]/.test(word) ? JSON.stringify(word) : word)).join(" ");
