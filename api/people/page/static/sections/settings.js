// The folded section of freezes and groups: who set each and why, and when a freeze begins or ends.
import { h, morphChildren } from "../dom.js";
import { drawFrozen, over } from "../frozen.js";
import { ask } from "../stream.js";
import { clock, since } from "../words.js";

/** The verbs that end a row of this section, each with the field that names the row. */
export const ENDS = { "delete-freeze": "freeze", "delete-group": "group" };

/** Reads and draws the section; it stays empty without permission or rows, and as it was after a failed read. */
export async function readSettings(offered) {
  const answers = await Promise.all([ask("/v1/freezes"), ask("/v1/groups")]).catch(() => null);
  if (!answers) return;
  const [freezes, groups] = answers.map(({ items }) => items);
  drawFrozen(freezes);
  const made = freezes.length + groups.length ? drawn(freezes, groups, offered) : null;
  morphChildren(document.getElementById("settings"), h("div", {}, made));
}

function drawn(freezes, groups, offered) {
  const on = freezes.filter((freeze) => freeze.frozen_until).length;
  const count = ({ length }, word) => (length ? [`${length} ${word}${length === 1 ? "" : "s"}`] : []);
  const said = [...count(freezes, "freeze").map((words) => `${words}, ${on || "none"} on`), ...count(groups, "group")].join("; ");
  const end = ({ verb }) => (each) => h("button", { type: "button", class: "quiet", "data-ask": verb, "data-name": each.name, "aria-label": `End ${each.name} …` }, "End …");
  const [endFreeze, endGroup] = Object.keys(ENDS).map((verb) => offered.find((button) => button.verb === verb)).map((button) => (button ? end(button) : () => null));
  const items = [...freezes.map((each) => freezeItem(each, endFreeze(each))), ...groups.map((each) => groupItem(each, endGroup(each)))];
  return h("details", { open: on > 0 }, h("summary", {}, said), h("ul", {}, items));
}

function freezeItem(freeze, button) {
  const { frozen_until: until, next_start: next } = freeze;
  const when = until ? ["on until ", clock(until)] : next ? ["from ", clock(next)] : ["over"];
  return item("freeze", freeze, [h("span", { class: until ? "warn" : "dim" }, when), `: ${over(freeze)}`], button);
}

function groupItem(group, button) {
  const most = group.most_at_once ? `${group.most_at_once} at once` : "";
  const how = [most, group.in_order ? "in order" : ""].filter(Boolean).join(", ");
  return item("group", group, [h("span", { class: "dim" }, how), `: ${group.deployments.join(", ")}`], button);
}

function item(kind, { name, actor, reason, created_at: at }, what, button) {
  const by = `, set by ${actor}${reason ? `: “${reason}”` : ""} `;
  return h("li", { "data-key": `${kind} ${name}` }, `${kind} `, h("strong", {}, name), " ", what, by, h("span", { class: "dim" }, since(at, "ago")), " ", button);
}
