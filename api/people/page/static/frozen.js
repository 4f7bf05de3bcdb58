// A strip on every page while a freeze is on: for what, until when and why.
import { h, morphChildren } from "./dom.js";
import { ask } from "./stream.js";
import { clock } from "./words.js";

const PAUSE = 30_000; // no event tells of freezes

/** What a freeze is for. */
export const over = ({ deployments, groups }) =>
  [...deployments, ...groups.map((group) => `the group ${group}`)].join(", ") || "all deployments";

/** `freezes`: as `/v1/freezes` has them. */
export function drawFrozen(freezes) {
  const strip = (freeze) => h("p", { class: "why warn", "data-key": freeze.name }, h("strong", {}, `Frozen: ${over(freeze)} until `, clock(freeze.frozen_until)), freeze.reason ? ` (${freeze.reason})` : "");
  morphChildren(document.getElementById("frozen"), h("div", {}, freezes.filter((freeze) => freeze.frozen_until).map(strip)));
}

/** What cannot be read stays as it was; who is not for all deployments sees none. */
async function read() {
  if (document.visibilityState !== "visible") return;
  const found = await ask("/v1/freezes").catch(() => null);
  if (found) drawFrozen(found.items);
}

setInterval(read, PAUSE);
document.addEventListener("visibilitychange", read);
read();
