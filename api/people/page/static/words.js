// Replicas, times and states in words.
import { h } from "./dom.js";

/** The states of replicas: a shape and a word for each. */
const SHAPES = {
  "■": ["healthy", "healthy"],
  "□": ["idle", "healthy, without traffic"],
  "△": ["degraded", "degraded"],
  "▲": ["unhealthy", "unhealthy"],
  "◇": ["starting", "starting"],
  "✗": ["failed", "failed"],
  "?": ["unknown", "unknown"],
};
const SYMBOLS = { healthy: "■", degraded: "△", unhealthy: "▲", provisioning: "◇", failed: "✗" };
const MOST_SHAPES = 32;
const CALENDAR = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "numeric", minute: "2-digit" });
const YEAR = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
/** A phone: long sections are folded. */
export const NARROW = matchMedia("(max-width: 34rem)");
const HOUR = 3_600_000;
let ahead = 0;

/** Sets the clock. The server's time counts: `now` is its newest answer. */
export function setClock(now) {
  ahead = Date.parse(now) - Date.now();
}

export function now() {
  return Date.now() + ahead;
}

/** Whether an answer about a deployment is older than the known one: answers and events may overtake each other. */
export function isOlder(answer, current) {
  if (answer.id !== current.id) return answer.created_at < current.created_at;
  if (answer.version !== current.version) return answer.version < current.version;
  return Date.parse(answer.now) < Date.parse(current.now);
}

export function symbolOf(route) {
  if (route.status === "healthy" && route.traffic === "inactive") return "□";
  return SYMBOLS[route.status] ?? "";
}

export function shape(symbol) {
  return h("i", { class: `shape ${(SHAPES[symbol] ?? SHAPES["?"])[0]}`, "aria-hidden": "true" });
}

/** A picture such as ■■|◇ in shapes, with the same in words for screen readers. */
export function picture(drawn, words = true) {
  const [left, right] = drawn.includes("|") ? drawn.split("|") : ["", drawn];
  const said = drawn.includes("|") ? `old: ${counted(left)}; new: ${counted(right)}` : counted(drawn);
  const shapes = (symbols) => [
    ...[...symbols].slice(0, MOST_SHAPES).map(shape),
    symbols.length > MOST_SHAPES ? h("span", { class: "more" }, `+${symbols.length - MOST_SHAPES}`) : null,
  ];
  const bar = drawn.includes("|") ? h("i", { class: "bar" }) : null;
  const attributes = words ? { role: "img", "aria-label": said } : { "aria-hidden": "true" };
  return h("span", { class: "picture", ...attributes }, shapes(left), bar, shapes(right));
}

function counted(symbols) {
  const counts = Object.entries(SHAPES)
    .map(([symbol, [, word]]) => [symbols.split(symbol).length - 1, word])
    .filter(([count]) => count)
    .map(([count, word]) => `${count} ${word}`);
  return counts.join(", ") || "none";
}

/** The legend of the shapes. */
export function legend() {
  return Object.entries(SHAPES)
    .filter(([symbol]) => symbol !== "?")
    .map(([symbol, [, word]]) => h("span", {}, shape(symbol), word));
}

/** 4 s, 5 min 10 s, 3 h 20 min, 2 d 4 h. */
export function duration(milliseconds) {
  const seconds = Math.abs(Math.round(milliseconds / 1000));
  for (const [unit, size, smaller, part] of [["d", 86400, "h", 3600], ["h", 3600, "min", 60], ["min", 60, "s", 1]]) {
    if (seconds < size) continue;
    const rest = Math.floor((seconds % size) / part);
    return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${smaller}` : ""}`;
  }
  return `${seconds} s`;
}

/** 4.2 s; whole seconds above ten. */
export const tenths = (milliseconds) => (milliseconds < 10000 ? `${(milliseconds / 1000).toFixed(1)} s` : duration(milliseconds));

/** The largest unit alone: 5 min. */
export function roughly(milliseconds) {
  return duration(milliseconds).split(" ").slice(0, 2).join(" ");
}

/** A duration that `tick` keeps up to date. `words`: "ago", "left" or nothing. */
export function since(at, words = "", attributes = {}) {
  const element = h("time", { ...attributes, datetime: at, "data-words": words, title: CALENDAR.format(new Date(at)) });
  element.append(durationWords(at, words));
  return element;
}

function durationWords(at, words) {
  const span = now() - Date.parse(at);
  if (words === "left") return span < 0 ? `${duration(span)} left` : `deadline passed ${duration(span)} ago`;
  return `${words ? roughly(span) : duration(span)}${words ? ` ${words}` : ""}`;
}

/** The local time, with the day unless it is today, or the day alone in another year. */
export function clock(at) {
  const [date, today] = [new Date(at), new Date(now())];
  const isOfYear = date.getFullYear() === today.getFullYear();
  const format = date.toDateString() === today.toDateString() ? CLOCK : isOfYear ? DAY : YEAR;
  return h("time", { class: "clock", datetime: at, title: CALENDAR.format(date) }, format.format(date));
}

/** Updates the durations that are in view. */
export function tick() {
  for (const element of document.querySelectorAll("time[data-words]")) {
    if (!element.checkVisibility({ contentVisibilityAuto: true })) continue;
    const text = durationWords(element.dateTime, element.dataset.words);
    if (element.textContent !== text) element.textContent = text;
  }
}

/** The last digits of an id, which commands accept. */
export const shortId = (id) => id.replaceAll("-", "").slice(-8);

/** The revisions that serve. */
export const revisionWords = (deployment) => deployment.runs || (deployment.lifecycle === "destroyed" ? "" : "none yet");

/** The last rollout, for an hour after it was rolled back; otherwise nothing. */
export function rolledBack({ rolled_back: back }) {
  if (!back || now() - Date.parse(back.at) > HOUR) return null;
  return h("span", { class: "badge bad", title: back.reason }, `${back.revision} rolled back `, since(back.at, "ago"));
}

export function serving(deployment) {
  const healthy = deployment.routes.filter((route) => route.status === "healthy" && route.traffic === "active");
  return `${healthy.length}/${deployment.desired_replicas}`;
}

/** Announces a text to screen readers. */
export function say(sentence) {
  document.getElementById("said").textContent = sentence;
}
