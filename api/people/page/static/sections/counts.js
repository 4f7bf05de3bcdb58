// The number of deployments of each kind: a button for each kind, which filters the list by it.
import { h, morphChildren } from "../dom.js";

const FAIL = "fail"; // no deployment has this as its state

/** The kind that a deployment counts as: failing ones and those on the way back are one kind. */
export const kindOf = ({ tone, word }) => (tone === "bad" ? FAIL : word);

/** Draws the buttons, failures first. `only`: the kind that filters the list, if any. Returns the text of its button. */
export function drawCounts(deployments, only) {
  const kinds = new Map(only ? [[only, { tone: only === FAIL ? "bad" : "rests", count: 0 }]] : []);
  for (const deployment of deployments) {
    const kind = kindOf(deployment);
    kinds.set(kind, { tone: deployment.tone, count: (kinds.get(kind)?.count ?? 0) + 1 });
  }
  const order = ([first], [second]) => (second === FAIL) - (first === FAIL) || (first < second ? -1 : 1);
  const button = ([kind, { tone, count }]) => h(
    "button",
    { type: "button", class: tone, "data-key": kind, "data-only": kind, "aria-pressed": String(kind === only) },
    said(kind, count),
  );
  morphChildren(document.getElementById("counts"), h("div", {}, [...kinds].sort(order).map(button)));
  return only && said(only, kinds.get(only).count);
}

const said = (kind, count) => `${count} ${{ [FAIL]: "failing", waits: "waiting" }[kind] ?? kind}`;
