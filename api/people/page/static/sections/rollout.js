// A rollout: its author and reason, and its waves on a time line.
import { h } from "../dom.js";
import { duration, NARROW, now, picture, since, tenths } from "../words.js";

/** The section. `cycles` and `plan`: the answers of `/v1/rollouts/ID/cycles` and `/plan`; no plan until it is read. */
export function rollout(shown, cycles, plan, deployment, log = null) {
  const isRunning = !shown.outcome;
  const ended = isRunning ? now() : Date.parse(shown.ended_at);
  const title = shown.is_undo ? "Rollback" : "Rollout";
  return h(
    "section",
    { class: "card", "aria-labelledby": "rollout-head", "data-key": "rollout" },
    h("h2", { id: "rollout-head" }, `${title}: ${shown.from_revision} → ${shown.to_revision}`,
      outcomeBadge(shown, deployment)),
    facts(shown, plan, ended, isRunning, log),
    otherwise(plan),
    waves(cycles, plan, Date.parse(shown.started_at), ended, isRunning),
  );
}

/** Its outcome, or the state of its deployment while it is under way. */
export function outcomeBadge({ outcome }, deployment) {
  const tone = { completed: "good", rolled_back: "bad" }[outcome] ?? (outcome ? "rests" : deployment.tone);
  return h("span", { class: `badge ${tone}` }, outcome?.replaceAll("_", " ") ?? deployment.word);
}

function facts(shown, plan, ended, isRunning, log) {
  const spec = Object.entries(shown.spec).filter(([, value]) => value !== null && value !== false && typeof value !== "object");
  const words = spec.map(([name, value]) => `${name} ${value}`).join(", ");
  const took = duration(ended - Date.parse(shown.started_at));
  const runs = () => (shown.clock_stopped_at ? "timeout paused" : since(shown.deadline, "left"));
  const clock = () => (shown.back_reason ? "no timeout in a rollback" : runs());
  const rows = [
    ["started by", shown.reason ? `${shown.actor}: “${shown.reason}”` : shown.actor],
    ["strategy", `${shown.strategy}${words ? `: ${words}` : ""}`],
    ["started", since(shown.started_at, "ago")],
    isRunning ? ["time", [h("span", {}, `${took}, `), clock()]] : ["took", took],
    plan?.waves.length ? ["planned", planWords(plan)] : null,
    plan ? ["requests", plan.requests] : null,
    shown.failed_routes ? ["failures", [`${shown.failed_routes}; ${shown.last_failure ?? ""} `, log]] : null,
    shown.back_reason ? ["rolled back because", shown.back_reason] : null,
  ];
  return h("dl", { class: "facts" }, rows.filter(Boolean).map(([name, value]) => h("div", { "data-key": name }, h("dt", {}, name), h("dd", {}, value))));
}

function planWords(plan) {
  const count = `${plan.waves.length} ${plan.waves.length === 1 ? "wave" : "waves"}`;
  const time = plan.seconds ? ` in ${spanWords(plan.seconds)}` : "; how long they take was not learned before";
  const order = plan.is_certain ? "" : ", or in another order";
  return `${count}${time}${order}`;
}

function otherwise(plan) {
  if (!plan?.deviations.length) return null;
  return h(
    "div",
    { class: "otherwise", role: "group", "aria-label": "Differences from the plan", "data-key": "otherwise" },
    h("strong", {}, "Differences from the plan"),
    h("ul", {}, plan.deviations.map((deviation) => h("li", {}, deviation))),
  );
}

function waves(cycles, plan, began, ended, isRunning) {
  if (!cycles.length) return h("p", { class: "empty" }, isRunning ? "Nothing has moved yet." : "It moved nothing.");
  const times = [...new Set(cycles.map((cycle) => cycle.step_no))].map((step) => cycles.filter((cycle) => cycle.step_no === step));
  const planned = plan?.waves ?? [];
  const whole = Math.max(ended - began, 1000 * (plan?.seconds?.p90 ?? 0), 1);
  const rows = times.map((wave, place) => {
    const at = Date.parse(wave[0].at);
    const until = place + 1 < times.length ? Date.parse(times[place + 1][0].at) : ended;
    const isLast = isRunning && place + 1 === times.length;
    return row(wave, planned.slice(place), at - began, Math.max(until - at, 0), whole, isLast);
  });
  const coming = isRunning ? alike(planned.slice(times.length)).map((waves) => comingRow(waves, whole, ended - began)) : [];
  const shown = h("ol", { class: "waves" }, rows, NARROW.matches ? null : coming);
  if (!NARROW.matches || !coming.length) return shown;
  const all = planned.slice(times.length).length;
  return [shown, h("details", { class: "fold", "data-key": "coming" }, h("summary", {}, `${all} ${all === 1 ? "wave" : "waves"} planned`), h("ol", { class: "waves" }, coming))];
}

/** Planned waves; consecutive ones that take no time share a row. */
function alike(planned) {
  const groups = [];
  for (const wave of planned) {
    const last = groups.at(-1);
    if (last && !takesTime(last.at(-1)) && !takesTime(wave)) last.push(wave);
    else groups.push([wave]);
  }
  return groups;
}

/** `planned`: the wave in the plan and those after it. A wave that waits for a person has no planned length. */
function row(wave, [planned, then], offset, span, whole, isLast) {
  const [own] = wave;
  const after = wave.at(-1);
  const happened = h("i", { class: "happened", place: { left: percent(offset, whole), width: percent(span, whole) } });
  const takes = planned && !(then && waitsFor(then)) && takesTime(planned) ? `; planned: ${spanWords(planned.takes)}` : "";
  return h(
    "li",
    { "data-key": `step-${own.step_no}`, class: isLast ? "wave now" : "wave" },
    h("span", { class: "offset" }, `+${tenths(offset)}`),
    h("span", { class: "change" }, picture(own.picture), after === own ? null : [h("i", { class: "then", "aria-label": "then" }, "›"), picture(after.picture)]),
    h("span", { class: "did" }, own.did),
    h("span", { class: "track", "aria-hidden": "true" }, bar(planned, whole), happened),
    h("span", { class: "span" }, isLast ? "" : tenths(span)),
    h("span", { class: "dim reason" }, own.why, takes),
  );
}

/** Waves of the plan that have not begun. `passed`: seconds since the start; earlier planned times are left out. */
function comingRow(waves, whole, passed) {
  const [planned] = waves;
  const at = planned.begins ? 1000 * planned.begins.p50 : 0;
  const count = waves.length > 1 ? `${waves.length} waves planned` : "Planned";
  return h(
    "li",
    { "data-key": `planned-${planned.number}`, class: "wave coming" },
    h("span", { class: "offset" }, at > passed ? `≈ +${tenths(at)}` : ""),
    h("span", { class: "change" }, picture(planned.picture)),
    h("span", { class: "did" }, waves.map(moves).filter(Boolean).join(", then ")),
    h("span", { class: "track", "aria-hidden": "true" }, bar(planned, whole)),
    h("span", { class: "span" }, ""),
    h("span", { class: "dim reason" }, count, [...new Set(waves.map(waitsFor))].join(""),
      takesTime(planned) ? `: ${spanWords(planned.takes)}` : ""),
  );
}

function moves(planned) {
  const words = ["create", "promote", "drain", "park"].filter((word) => planned[word]);
  return words.map((word) => `${word} ${planned[word]}`).join(", ");
}

/** A bar from the planned start, as long as the median of planned lengths. */
function bar(planned, whole) {
  if (!planned?.begins || !planned.takes) return null;
  return h("i", { class: "planned", place: { left: percent(1000 * planned.begins.p50, whole), width: percent(1000 * planned.takes.p50, whole) } });
}

function waitsFor(planned) {
  if (planned.waits_for_person) return ", waits for a person";
  return planned.waits_for_judge ? ", waits for its judge" : "";
}

/** Whether the wave takes time, unlike one that only moves traffic or ends the rollout. */
const takesTime = ({ takes }) => takes && takes.p90 >= 0.05;

const percent = (part, whole) => `${Math.min(100, (100 * part) / whole).toFixed(2)}%`;

function spanWords({ p50, p90 }) {
  const [low, high] = [tenths(1000 * p50), tenths(1000 * p90)];
  return low === high ? low : `${low} to ${high}`;
}
