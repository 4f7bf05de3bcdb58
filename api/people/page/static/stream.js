// One stream of events for all tabs of a browser: the tab with the lock listens, and forwards to the others.
//
//   tab 1  holds the lock ──── GET /v1/events ────▶ server
//     └── BroadcastChannel ──▶ tab 2, tab 3, ...   (a hidden tab neither listens nor holds the lock)
import { loggedOut } from "./session.js";

const CHANNEL = "rollway-events";
const LOCK = "rollway-stream";
const PAUSE = 1000;
const UNTOLD_PAUSE = 5000; // for pages without events
const SILENCE = 9000; // the server sends a sign of life every 4 s
const PATIENCE = 40000; // for a read
const HOUR = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

/** Calls `changed(kind, document)` for each event, and `refresh()` whenever events may have been missed. */
export function follow(changed, refresh) {
  isWhole();
  const channel = new BroadcastChannel(CHANNEL);
  let last = null;
  let ending = null;

  const take = ({ texts, state }) => {
    if (state) show(state);
    for (const { id, kind, document } of (texts ?? []).map(parsed)) {
      if (id) last = id;
      if (document) changed(kind, document);
    }
  };
  channel.onmessage = ({ data }) => {
    if (document.visibilityState !== "visible") return;
    if (data.asks && ending?.leads) channel.postMessage({ state: ending.state });
    else take(data);
  };
  const tell = (message) => {
    if (message.state && ending) ending.state = message.state;
    take(message);
    channel.postMessage(message);
  };

  const wake = async () => {
    if (document.visibilityState !== "visible") {
      ending?.abort();
      ending = null;
      return;
    }
    if (ending) return;
    const own = (ending = new AbortController());
    const lead = (lock) => {
      own.leads = lock !== null;
      if (own.leads) return listen(own.signal, () => last, tell, refresh);
      refreshAgain(refresh, own.signal); // not awaited: the leading tab may close meanwhile
      return undefined;
    };
    channel.postMessage({ asks: true });
    try {
      await navigator.locks.request(LOCK, { ifAvailable: true }, lead);
      if (!own.signal.aborted) await navigator.locks.request(LOCK, { signal: own.signal }, lead);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  };
  document.addEventListener("visibilitychange", wake);
  wake();
}

/** Calls `refresh()` regularly while the page is visible, for changes that send no event. */
export function watch(refresh) {
  isWhole();
  let isAsking = false;
  const look = async () => {
    if (isAsking || document.visibilityState !== "visible") return;
    isAsking = true;
    await refreshAgain(refresh, new AbortController().signal);
    show("live");
    isAsking = false;
  };
  document.addEventListener("visibilitychange", look);
  window.addEventListener("offline", () => show("away"));
  setInterval(look, UNTOLD_PAUSE);
  look();
}

/** All scripts of the page have come. Otherwise the timer in its HTML loads the page again. */
const isWhole = () => clearTimeout(window.again);

async function refreshAgain(refresh, signal) {
  for (let hasFailed = false; !signal.aborted; hasFailed = true) {
    try {
      await refresh();
      if (hasFailed) show("live");
      return;
    } catch {
      show("away");
      await pause(PAUSE);
    }
  }
}

/** Whether the same request would be refused again. */
export function isFinal({ status }) {
  return status >= 400 && status < 500 && status !== 429;
}

/** Calls `work` until it succeeds. Otherwise the page would show old values until the next change. */
export async function insist(work) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (isFinal(error)) return undefined;
      await pause(PAUSE);
    }
  }
}

async function listen(signal, last, tell, refresh) {
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const attempt = new AbortController();
    const cut = () => attempt.abort();
    window.addEventListener("offline", cut); // an open stream does not end by itself then
    try {
      const headers = last() ? { "last-event-id": last() } : {};
      const answer = await within(SILENCE, fetch("/v1/events", { headers, signal: AbortSignal.any([signal, attempt.signal]) }));
      if (answer.status === 401) await loggedOut();
      if (answer.ok) {
        tell({ state: "live" });
        if (isFirst || !last()) refreshAgain(refresh, signal);
        await read(answer.body.pipeThrough(new TextDecoderStream()), tell);
      }
    } catch {
      if (signal.aborted) return;
    } finally {
      window.removeEventListener("offline", cut);
      cut();
    }
    tell({ state: "away" });
    await pause(PAUSE * (1 + Math.random()));
  }
}

async function read(stream, tell) {
  const reader = stream.getReader();
  try {
    for (let rest = ""; ; ) {
      const { value, done } = await within(SILENCE, reader.read());
      if (done) return;
      const texts = (rest + value).split("\n\n");
      rest = texts.pop();
      tell({ texts });
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Rejects after this time, since a dead connection is not always closed. */
function within(milliseconds, promise) {
  let timer;
  const silence = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("silence")), milliseconds);
  });
  return Promise.race([promise, silence]).finally(() => clearTimeout(timer));
}

function parsed(text) {
  const fields = {};
  for (const line of text.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  const hasDocument = fields.event === "deployment" || fields.event === "history";
  return { id: fields.id, kind: fields.event, document: hasDocument ? JSON.parse(fields.data) : null };
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function show(state) {
  const element = document.getElementById("link");
  if (element.dataset.state === state) return;
  element.dataset.state = state;
  element.textContent = state === "live" ? "live" : `no connection since ${HOUR.format(new Date())}, trying again`;
  document.body.classList.toggle("stale", state !== "live");
}

/** Reads from the API. Without a valid session the page asks for a login. */
export async function ask(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE) });
  if (answer.status === 401) loggedOut();
  const document = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(document.detail), { status: answer.status, values: document.values });
  return document;
}
