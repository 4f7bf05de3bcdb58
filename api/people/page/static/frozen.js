// The strip on every page during a freeze: its deployments, its end, and its reason.
import { h, morphChildren } from "./dom.js";
import { ask } from "./stream.js";
import { clock } from "./words.js";

const PAUSE = 30_000; // freezes send no event

/** The deployments and groups of a freeze. */
export const over = ({ deployments, groups }) =>
  [...deployments, ...groups.map((group) => `the group ${group}`)].join(", ") || "all deployments";

/** `freezes`: the items of `/v1/freezes`. */
export function drawFrozen(freezes) {
  const strip = (freeze) => h("p", { class: "why warn", "data-key": freeze.name }, h("strong", {}, `Frozen: ${over(freeze)} until `, clock(freeze.frozen_until)), freeze.reason ? ` (${freeze.reason})` : "");
  morphChildren(document.getElementById("frozen"), h("div", {}, freezes.filter((freeze) => freeze.frozen_until).map(strip)));
}

/** Reads and draws the freezes. A failed read changes nothing; a token of some deployments may not read them. */
async function read() {
  if (document.visibilityState !== "visible") return;
  const answer = await ask("/v1/freezes").catch(() => null);
  if (answer) drawFrozen(answer.items);
}

setInterval(read, PAUSE);
document.addEventListener("visibilitychange", read);
read();
