// The last hour as callers saw it: curves of requests, failures, and time to the first byte.
import { h } from "../dom.js";
import { chart, curve } from "./evidence.js";

const KNOWN_SECONDS = 20;

/** The section; null without requests or reports of proxies. `found`: the answer of `/v1/deployments/NAME/requests`. */
export function callers(answer) {
  const points = (answer?.minutes ?? []).filter((minute) => minute.seconds > KNOWN_SECONDS);
  if (!points.some((minute) => minute.per_second > 0)) return null;
  const sum = (name) => answer.now.reduce((total, revision) => total + revision[name], 0);
  const rate = (value) => (value >= 10 ? value.toFixed(0) : value.toPrecision(2).replace(/\.?0+$/, ""));
  const slowest = Math.max(0, ...answer.now.map(({ most_ms: ms }) => ms ?? 0));
  const [hour, now] = ["1 hour ago", "now"];
  const drawn = (title, said, ...curves) => chart(points, title, said, curves, hour, now);
  return h(
    "section",
    { class: "card", "aria-labelledby": "callers-head", "data-key": "callers" },
    h("h2", { id: "callers-head" }, "Callers"),
    h(
      "div",
      { class: "curves" },
      drawn("Requests a second", `now ${rate(sum("per_second"))}`, curve("all", "canary", (minute) => minute.per_second)),
      drawn(
        "Failures a second",
        `now ${rate(sum("failed_per_second"))}, and 4xx ${rate(sum("refused_per_second"))}`,
        curve("4xx", "other", (minute) => minute.refused_per_second),
        curve("failed", "failed", (minute) => minute.failed_per_second),
      ),
      drawn(
        "First byte, ms",
        slowest ? `now p95 ${slowest} ms` : "not known now",
        curve("p95", "other", (minute) => minute.most_ms),
        curve("median", "canary", (minute) => minute.half_ms),
      ),
    ),
  );
}
