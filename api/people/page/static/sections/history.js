// What has happened, the newest first; failures that are over are folded.
import { h } from "../dom.js";
import { clock, since } from "../words.js";

const FAILED = new Set(["error", "expired", "give_up"]);
/** Handlers, as people call what they do. */
const WORDS = {
  check_pending: "first revision", check_replica: "check of replicas", reconcile: "check of replicas",
  deploying_provisioning: "rollout", deploying_rolling_back: "rollback",
};

/** The section. `records`: as `/v1/deployments/NAME/history` has them, the newest first. */
export function history(records) {
  const groups = [];
  for (const record of records) {
    const isFailure = FAILED.has(record.result);
    const last = groups.at(-1);
    if (last && isFailure && last.isFailure) last.records.push(record);
    else groups.push({ isFailure, records: [record] });
  }
  const none = records.length ? null : h("p", { class: "empty" }, "Nothing yet.");
  return h(
    "section",
    { class: "card", "aria-labelledby": "history-head", "data-key": "history" },
    h("h2", { id: "history-head" }, "History"),
    h("ol", { class: "history" }, groups.map((group, place) => (group.isFailure && place ? folded(group.records) : group.records.map(line)))),
    none,
  );
}

function folded(records) {
  const count = records.reduce((sum, record) => sum + record.attempts, 0);
  const oldest = records.at(-1);
  return h(
    "li",
    { "data-key": `fold ${oldest.created_at}`, class: "fold" },
    h("details", {},
      h("summary", {}, `${count} ${count === 1 ? "failure" : "failures"} that ${count === 1 ? "is" : "are"} over, `, since(records[0].updated_at, "ago")),
      h("ol", { class: "history" }, records.map(line))),
  );
}

function line(record) {
  const who = record.actor === record.phase ? "" : record.actor; // a handler is named as what it does
  const kind = FAILED.has(record.result) ? "failed" : who ? "person" : "";
  return h(
    "li",
    { "data-key": `${record.created_at} ${record.phase} ${record.result} ${record.target}`, class: `record ${kind}` },
    clock(record.updated_at),
    since(record.updated_at, "ago"),
    h("span", { class: "phase" }, WORDS[record.phase] ?? record.phase.replaceAll("_", " ")),
    h("span", { class: "who" }, who),
    h("span", { class: "message" }, record.message, record.attempts > 1 ? h("span", { class: "dim" }, ` (${record.attempts} times)`) : null),
  );
}
