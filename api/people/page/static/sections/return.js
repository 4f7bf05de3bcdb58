// The way back to the list: the address keeps filter and order, the entry in the browser's history the row on top.
const PAUSE = 200;
const FRAMES = 10;
const BELOW_HEAD = 8;
let wanted = history.state?.top ?? null;
let timer = null;

/** Writes the values into the address, without empty ones. */
export function keepAddress(values) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value));
  history.replaceState(history.state, "", query.size ? `?${query}` : location.pathname);
}

/** Notes the row on top while the list is scrolled. Once a person has scrolled, the list does not jump back. */
export function keepPlace() {
  history.scrollRestoration = "manual"; // rows arrive later
  for (const move of ["wheel", "touchmove", "keydown", "pointerdown"]) addEventListener(move, () => (wanted = null), { once: true, passive: true });
  addEventListener("scroll", () => {
    clearTimeout(timer);
    timer = setTimeout(note, PAUSE);
  }, { passive: true });
  addEventListener("pagehide", note);
}

function note() {
  clearTimeout(timer);
  if (wanted) return;
  const row = document.elementFromPoint(innerWidth / 2, BELOW_HEAD)?.closest(".row");
  const top = scrollY && row ? { name: row.dataset.key, offset: row.getBoundingClientRect().top } : null;
  history.replaceState({ ...history.state, top }, "");
}

/** Scrolls to the row that was on top once all rows are there, and for some frames more, since rows in view may turn out lower than estimated. */
export function goBack(rows, frames = FRAMES) {
  const row = wanted && rows.get(wanted.name);
  if (row?.isConnected && frames) {
    scrollBy(0, row.getBoundingClientRect().top - wanted.offset);
    requestAnimationFrame(() => goBack(rows, frames - 1));
  } else {
    wanted = null;
  }
}
