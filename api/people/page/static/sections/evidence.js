// The evidence of a judged canary as curves: requests, failures, and how near the judge is to either verdict.
import { h, svg } from "../dom.js";
import { duration } from "../words.js";

const [WIDTH, HEIGHT, TOP, FOOT] = [300, 120, 8, 16];

/** The section; null with fewer than two points. `evidence`: the answer of `/v1/rollouts/ID/evidence`. */
export function curves(evidence) {
  if (!evidence || evidence.points.length < 2) return null;
  const { points, compared_with: other, harm_limit: harm, good_limit: good } = evidence;
  const last = points.at(-1);
  const whole = (name) => Math.round(last[name]).toLocaleString();
  const tenth = (value) => value.toFixed(1);
  return h(
    "section",
    { class: "card", "aria-labelledby": "evidence-head", "data-key": "evidence" },
    h("h2", { id: "evidence-head" }, "Evidence"),
    h(
      "div",
      { class: "curves" },
      chart(points, "Requests", `canary ${whole("canary")}, ${other} ${whole("control")}`, [
        curve("canary", "canary", (point) => point.canary), curve(other, "other", (point) => point.control),
      ]),
      chart(points, "Failures", `canary ${whole("canary_failed")}, ${other} ${whole("control_failed")}`, [
        curve("canary", "canary", (point) => point.canary_failed), curve(other, "other", (point) => point.control_failed),
      ]),
      chart(points, "Harm", `log e-value ${tenth(last.harm)}; it is aborted at ${tenth(harm)}`, [
        curve("harm", "canary", (point) => point.harm), curve("limit", "limit", () => harm),
      ]),
      chart(points, "Good enough", `log e-value ${tenth(last.good)}; the step is over at ${tenth(good)}`, [
        curve("good", "canary", (point) => point.good), curve("limit", "limit", () => good),
      ]),
    ),
  );
}

/** `value(point)`: its height, or null for a gap. */
export const curve = (name, kind, value) => ({ name, kind, value });

/** Curves over points in time. `start`: the label below the first point. */
export function chart(points, title, said, drawn, start = "0 s", end = duration(Date.parse(points.at(-1).at) - Date.parse(points[0].at))) {
  const [first, last] = [Date.parse(points[0].at), Date.parse(points.at(-1).at)];
  const highest = Math.max(...drawn.flatMap(({ value }) => points.map(value)), 1);
  const x = (point) => (WIDTH * (Date.parse(point.at) - first)) / Math.max(1, last - first);
  const y = (value) => TOP + (HEIGHT - TOP - FOOT) * (1 - Math.max(0, value) / highest);
  const key = title.toLowerCase().replaceAll(" ", "-");
  return h(
    "figure",
    { "data-key": key },
    svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-labelledby": `${key}-title`, "aria-describedby": `${key}-desc` },
      svg("title", { id: `${key}-title` }, title),
      svg("desc", { id: `${key}-desc` }, `Over ${duration(last - first)}: ${said}.`),
      svg("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT - FOOT, y2: HEIGHT - FOOT }),
      drawn.map(({ kind, value }) => svg("polyline", {
        class: `curve ${kind}`, points: points.filter((point) => value(point) !== null).map((point) => `${x(point).toFixed(1)},${y(value(point)).toFixed(1)}`).join(" "),
      })),
      svg("text", { x: 0, y: HEIGHT - 3 }, start),
      svg("text", { x: WIDTH, y: HEIGHT - 3, "text-anchor": "end" }, end),
    ),
    h(
      "figcaption",
      {},
      h("strong", {}, title), " ",
      drawn.map(({ name, kind }) => [h("span", { class: `key ${kind}` }, name), " "]),
      h("span", { class: "dim" }, said),
    ),
  );
}
