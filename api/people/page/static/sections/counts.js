// How many deployments there are of each kind: a button each, which shows these alone.
import { h, morphChildren } from "../dom.js";

const FAIL = "fail"; // no word that a deployment stands with

/** What it is counted as: what fails or goes back is one sum. */
export const kindOf = ({ tone, word }) => (tone === "bad" ? FAIL : word);

/** Draws them, what fails first. `only`: the kind that is shown alone, if one is. Returns what its button says. */
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
