// Replicas, times and states as people read them.
import { h } from "./dom.js";

/** The pictures of the house: a shape and a word for each. */
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
/** A telephone: what is long is folded. */
export const NARROW = matchMedia("(max-width: 34rem)");
const HOUR = 3_600_000;
let ahead = 0;

/** The server's clock counts: `now` is what it said just now. */
export function setClock(now) {
  ahead = Date.parse(now) - Date.now();
}

export function now() {
  return Date.now() + ahead;
}

/** Whether what was read of a deployment is older than what is known: answers and events may overtake each other. */
export function isOlder(read, known) {
  if (read.id !== known.id) return read.created_at < known.created_at;
  if (read.version !== known.version) return read.version < known.version;
  return Date.parse(read.now) < Date.parse(known.now);
}

export function symbolOf(route) {
  if (route.status === "healthy" && route.traffic === "inactive") return "□";
  return SYMBOLS[route.status] ?? "";
}

export function shape(symbol) {
  return h("i", { class: `shape ${(SHAPES[symbol] ?? SHAPES["?"])[0]}`, "aria-hidden": "true" });
}

/** A picture such as ■■|◇ in shapes, with the same in words for who cannot see them. */
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

/** What each shape means. */
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

/** 4.2 s, and no more exactly than seconds above ten. */
export const tenths = (milliseconds) => (milliseconds < 10000 ? `${(milliseconds / 1000).toFixed(1)} s` : duration(milliseconds));

/** The greatest unit alone. */
export function roughly(milliseconds) {
  return duration(milliseconds).split(" ").slice(0, 2).join(" ");
}

/** How long ago, counted on by `tick`. `words`: "ago", "left" or nothing. */
export function since(at, words = "", attributes = {}) {
  const element = h("time", { ...attributes, datetime: at, "data-words": words, title: CALENDAR.format(new Date(at)) });
  element.append(told(at, words));
  return element;
}

function told(at, words) {
  const span = now() - Date.parse(at);
  if (words === "left") return span < 0 ? `${duration(span)} left` : `deadline passed ${duration(span)} ago`;
  return `${words ? roughly(span) : duration(span)}${words ? ` ${words}` : ""}`;
}

/** What the clock shows then, with the day where that is not today, or the day alone where that is in another year. */
export function clock(at) {
  const [date, today] = [new Date(at), new Date(now())];
  const isOfYear = date.getFullYear() === today.getFullYear();
  const format = date.toDateString() === today.toDateString() ? CLOCK : isOfYear ? DAY : YEAR;
  return h("time", { class: "clock", datetime: at, title: CALENDAR.format(date) }, format.format(date));
}

/** Brings what counts time up to date, of what is in view. */
export function tick() {
  for (const element of document.querySelectorAll("time[data-words]")) {
    if (!element.checkVisibility({ contentVisibilityAuto: true })) continue;
    const text = told(element.dateTime, element.dataset.words);
    if (element.textContent !== text) element.textContent = text;
  }
}

/** The last digits of an id, as commands take it. */
export const shortId = (id) => id.replaceAll("-", "").slice(-8);

/** Its revisions, as the server says what serves. */
export const revisionWords = (deployment) => deployment.runs || (deployment.lifecycle === "destroyed" ? "" : "none yet");

/** The last rollout, for an hour after it went back; nothing otherwise. */
export function rolledBack({ rolled_back: back }) {
  if (!back || now() - Date.parse(back.at) > HOUR) return null;
  return h("span", { class: "badge bad", title: back.reason }, `${back.revision} rolled back `, since(back.at, "ago"));
}

export function serving(deployment) {
  const healthy = deployment.routes.filter((route) => route.status === "healthy" && route.traffic === "active");
  return `${healthy.length}/${deployment.desired_replicas}`;
}

/** For who listens rather than looks. */
export function say(sentence) {
  document.getElementById("said").textContent = sentence;
}
