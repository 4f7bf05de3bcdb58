// Freezes and groups, folded: who set each and why, and until when a freeze is on, or when it begins.
import { h, morphChildren } from "../dom.js";
import { ask } from "../stream.js";
import { clock, since } from "../words.js";

/** Reads and draws them; nothing for who may not see them, or where there is none. What cannot be read stays as it was. */
export async function readSettings() {
  const found = await Promise.all([ask("/v1/freezes"), ask("/v1/groups")]).catch(() => null);
  if (!found) return;
  const [freezes, groups] = found.map(({ items }) => items);
  const made = freezes.length + groups.length ? drawn(freezes, groups) : null;
  morphChildren(document.getElementById("settings"), h("div", {}, made));
}

function drawn(freezes, groups) {
  const on = freezes.filter((freeze) => freeze.frozen_until).length;
  const count = ({ length }, word) => (length ? [`${length} ${word}${length === 1 ? "" : "s"}`] : []);
  const said = [...count(freezes, "freeze").map((words) => `${words}, ${on || "none"} on`), ...count(groups, "group")].join("; ");
  return h("details", {}, h("summary", {}, said), h("ul", {}, freezes.map(freezeItem), groups.map(groupItem)));
}

function freezeItem(freeze) {
  const { frozen_until: until, next_start: next, deployments, groups } = freeze;
  const over = [...deployments, ...groups.map((group) => `the group ${group}`)].join(", ") || "all deployments";
  const when = until ? ["on until ", clock(until)] : next ? ["from ", clock(next)] : ["over"];
  return item("freeze", freeze, [h("span", { class: until ? "warn" : "dim" }, when), `: ${over}`]);
}

function groupItem(group) {
  const most = group.most_at_once ? `${group.most_at_once} at once` : "";
  const how = [most, group.in_order ? "in order" : ""].filter(Boolean).join(", ");
  return item("group", group, [h("span", { class: "dim" }, how), `: ${group.deployments.join(", ")}`]);
}

function item(kind, { name, actor, reason, created_at: at }, what) {
  const by = `, set by ${actor}${reason ? `: “${reason}”` : ""} `;
  return h("li", { "data-key": `${kind} ${name}` }, `${kind} `, h("strong", {}, name), " ", what, by, h("span", { class: "dim" }, since(at, "ago")));
}
