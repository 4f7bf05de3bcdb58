// The log of a replica: its last lines, and new ones as they come. It is shown as text, whatever it contains.
import { sent } from "../ask.js";
import { h } from "../dom.js";
import { loggedOut } from "../session.js";
import { isFinal } from "../stream.js";
import { say, shortId } from "../words.js";

const NAME = document.body.dataset.deployment;
const PAUSE = 2000;
const MOST_PIECES = 300; // a piece has a few lines while the log is followed, and at most 64 KiB
const COLOURS = /\u001b\[[0-9;]*[A-Za-z]/g;
const mayRead = document.body.dataset.logs === "shown";
let log = null;
let isReading = false;
let isLive = () => true;
let drawn = () => {};

/** The button that opens a replica's log; null if it has none. */
export function logButton(route, label = "Log") {
  if (!mayRead || !route.host || route.host === "external") return null;
  const ariaLabel = label === "Log" ? `Log of ${shortId(route.id)}` : label;
  return h("button", { type: "button", class: "quiet", "data-log": route.id, "aria-label": ariaLabel, "aria-expanded": String(log?.route.id === route.id) }, label);
}

/** The open log; null if none is open. */
export function printed() {
  if (!log) return null;
  const { route, pieces, said, isFollowed, wanted, isWrapped } = log;
  const hasEnded = !isLive(route.id);
  const button = (what, label, attributes = {}) => h("button", { type: "button", "data-key": what, "data-log-do": what, ...attributes }, label);
  return h(
    "div",
    { class: "log", "data-key": `log ${route.id}` },
    h("h3", { id: "log-head" }, "Log of ", h("code", {}, shortId(route.id)), h("span", { class: "dim" }, ` ${route.revision}${hasEnded ? ", which has ended" : ""}`)),
    h("pre", { id: "log", class: isWrapped ? null : "unwrapped", tabindex: 0, role: "region", "aria-labelledby": "log-head", "data-key": "text" }, wanted ? matching(pieces, wanted) : pieces),
    said ? h("p", { class: "dim", "data-key": "said" }, said) : null,
    h(
      "div",
      { class: "buttons", "data-key": "buttons" },
      button("again", "Load more"),
      hasEnded ? null : button("follow", "Follow", { "aria-pressed": String(isFollowed) }),
      button("wrap", "Wrap lines", { "aria-pressed": String(isWrapped) }),
      button("download", "Download"),
      button("close", "Close"),
      h("input", { type: "search", id: "log-search", "data-key": "search", placeholder: "Lines with …", "aria-label": "Show only lines with" }),
    ),
  );
}

/** The lines that contain the searched text. */
function matching(pieces, wanted) {
  const lines = pieces.join("").split("\n").filter((line) => line.toLowerCase().includes(wanted));
  return [lines.length ? lines.join("\n") : `No line has “${wanted}”.`];
}

/** Whether the log of this replica is open, and drawn below it. */
export const isPrinted = (route) => log?.route.id === route.id;

/** Calls `draw()`, and keeps the end of the log in view if it was. */
export function keepEnd(draw) {
  const before = document.getElementById("log");
  const isAtEnd = !before || before.scrollTop + before.clientHeight >= before.scrollHeight - 4;
  draw();
  const shown = document.getElementById("log");
  if (shown && isAtEnd) shown.scrollTop = shown.scrollHeight;
}

/** Listens to the buttons. `find(id)`: the replica; `live(id)`: whether it runs; `draw()`: draws the page again. */
export function offerLogs(find, live, draw) {
  isLive = live;
  drawn = draw;
  document.addEventListener("click", ({ target }) => {
    const id = target.closest("[data-log]")?.dataset.log;
    if (id && id === log?.route.id) DOES.close();
    else if (id) open(find(id));
    const what = target.closest("[data-log-do]")?.dataset.logDo;
    if (what) DOES[what]();
  });
  document.addEventListener("input", ({ target }) => {
    if (target.id !== "log-search" || !log) return;
    log.wanted = target.value.trim().toLowerCase();
    draw();
  });
  setInterval(() => log?.isFollowed && document.visibilityState === "visible" && read(), PAUSE);
}

const DOES = {
  again: () => read(),
  follow: () => {
    log.isFollowed = !log.isFollowed;
    if (log.isFollowed) read();
    drawn();
  },
  wrap: () => {
    log.isWrapped = !log.isWrapped;
    drawn();
  },
  download: () => {
    const place = URL.createObjectURL(new Blob(log.pieces, { type: "text/plain" }));
    h("a", { href: place, download: `${NAME}-${log.route.revision}-${shortId(log.route.id)}.log` }).click();
    URL.revokeObjectURL(place);
  },
  close: () => {
    const { id } = log.route;
    log = null;
    document.querySelector(`[data-log="${id}"]`)?.focus();
    drawn();
  },
};

/** Opens the log of the replica that the address names. */
export const openLog = (route) => route && mayRead && log?.route.id !== route.id && open(route);

async function open(route) {
  if (!route) return;
  log = { route, pieces: [], place: null, said: "Loading …", isFollowed: false, wanted: "", isWrapped: true };
  drawn();
  await read();
  requestAnimationFrame(() => document.getElementById("log")?.focus());
}

async function read() {
  if (isReading) return;
  isReading = true;
  const current = log;
  const isLast = !isLive(current.route.id); // its last lines are read before following ends
  try {
    take(current, await sent(`/deployments/${encodeURIComponent(NAME)}/logs`, form(current)));
  } catch (problem) {
    if (problem.status === 401) loggedOut();
    current.said = problem.detail ?? "The server did not answer.";
    if (isFinal(problem)) current.isFollowed = false;
  } finally {
    isReading = false;
  }
  if (isLast) current.isFollowed = false;
  if (log && log !== current) return read();
  return drawn();
}

function form({ route, place }) {
  const token = document.querySelector("#ask-form [name=form_token]").value;
  return new URLSearchParams({ form_token: token, route: route.id, ...(place === null ? {} : { place }) });
}

/** Adds a piece as a text of its own, so that a selection above it stays. */
function take(current, { items: [piece], silent: [host] }) {
  const { route, pieces } = current;
  if (!piece) {
    const tail = pieces.length ? null : route.log_tail;
    if (tail) pieces.push(tail);
    const isKept = tail ? " These are the lines that were kept when it failed." : "";
    current.said = host ? `Host ${host} does not answer.${isKept}` : isKept.trim() || "It has printed nothing yet, or what runs it keeps its log.";
    return;
  }
  const isFirst = current.place === null;
  current.place = piece.place;
  const text = piece.text.replace(COLOURS, "");
  if (text) pieces.push(text);
  pieces.splice(0, pieces.length - MOST_PIECES);
  current.said = pieces.length ? (text || isFirst || current.isFollowed ? "" : "Nothing new.") : "It has printed nothing yet.";
  if (!isFirst && !current.isFollowed) say(text ? "There is more in the log" : "Nothing new");
}
