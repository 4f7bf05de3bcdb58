// The order of the list: by a column, up or down, as the address says. Each row is inserted at its place.
import { h, morphChildren } from "../dom.js";
import { revisionWords } from "../words.js";

const COLUMNS = [["name", "Deployment"], ["state", "State"], ["age", "Age"], ["", "Replicas"], ["revision", "Revision"], ["", "Reason"]];
const LATEST = 1e14; // milliseconds; a younger deployment has a smaller key
const KEYS = {
  name: () => "",
  state: ({ word }) => word,
  age: ({ phase_started_at: at }) => String(LATEST - Date.parse(at)).padStart(15, "0"),
  revision: revisionWords,
};
const keys = new Map(); // the sort key of each row, by name

/** {by: "age", isDown: true} for "-age"; by name for an unknown text. */
export function orderOf(text) {
  const by = text.replace(/^-/, "");
  return by in KEYS ? { by, isDown: text.startsWith("-") } : { by: "name", isDown: false };
}

/** The order as the address writes it; empty for the order by name. */
export const textOf = ({ by, isDown }) => (by === "name" && !isDown ? "" : `${isDown ? "-" : ""}${by}`);

/** Draws the head of the list, with a button for each column that sorts it. */
export function drawColumns(order) {
  const sorted = (by) => (by !== order.by ? "none" : order.isDown ? "descending" : "ascending");
  const column = ([by, words]) => (by
    ? h("span", { role: "columnheader", "aria-sort": sorted(by) }, h("button", { type: "button", class: "quiet", "data-sort": by }, words))
    : h("span", { role: "columnheader" }, words));
  morphChildren(document.getElementById("columns"), h("div", {}, COLUMNS.map(column)));
}

const before = (one, other, { isDown }) => {
  const [first, second] = [keys.get(one) ?? "", keys.get(other) ?? ""];
  const isFirst = first === second ? one < other : first < second;
  return isDown ? !isFirst : isFirst;
};

/** Moves a row to its place, unless it is between the right neighbours already. */
export function place(deployment, element, list, order) {
  const { name } = deployment;
  const key = KEYS[order.by](deployment);
  const isThere = element.parentElement === list;
  if (isThere && keys.get(name) === key) return;
  keys.set(name, key);
  if (isThere && fits(element, name, order)) return;
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  element.remove();
  list.insertBefore(element, firstAfter(list.children, name, order));
  focused?.focus({ preventScroll: true });
}

function fits({ previousElementSibling: last, nextElementSibling: next }, name, order) {
  return (!last || before(last.dataset.key, name, order)) && (!next || before(name, next.dataset.key, order));
}

function firstAfter(elements, name, order) {
  let [low, high] = [0, elements.length];
  if (high && before(elements[high - 1].dataset.key, name, order)) return null; // rows arrive sorted by name
  while (low < high) {
    const middle = (low + high) >> 1;
    if (before(elements[middle].dataset.key, name, order)) low = middle + 1;
    else high = middle;
  }
  return elements[low] ?? null;
}

/** Sorts a whole list. */
export function arrange(list, deployments, order) {
  const elements = [...list.children];
  for (const { dataset } of elements) keys.set(dataset.key, deployments.has(dataset.key) ? KEYS[order.by](deployments.get(dataset.key)) : "");
  list.append(...elements.sort((one, other) => (before(one.dataset.key, other.dataset.key, order) ? -1 : 1)));
}
