// A rollout: who began it and why, and its waves on a time line.
import { h } from "./dom.js";
import { duration, now, picture, since } from "./words.js";

const WORDS = { completed: "completed", rolled_back: "rolled back", superseded: "left for another", cancelled: "cancelled" };

/** The section. `cycles`: as `/v1/rollouts/ID/cycles` has them. */
export function rollout(shown, cycles, deployment) {
  const isRunning = !shown.outcome;
  const ended = isRunning ? now() : Date.parse(shown.ended_at);
  const title = shown.is_undo ? "Way back" : "Rollout";
  return h(
    "section",
    { class: "card", "aria-labelledby": "rollout-head", "data-key": "rollout" },
    h("h2", { id: "rollout-head" }, `${title}: ${shown.from_revision} → ${shown.to_revision}`,
      h("span", { class: `badge ${badge(shown)}` }, outcome(shown, deployment))),
    facts(shown, ended, isRunning),
    waves(cycles, Date.parse(shown.started_at), ended, isRunning, deployment),
  );
}

function badge(shown) {
  if (!shown.outcome) return "moves";
  return shown.outcome === "completed" ? "good" : "warn";
}

function outcome(shown, deployment) {
  if (shown.outcome) return WORDS[shown.outcome] ?? shown.outcome.replaceAll("_", " ");
  return deployment.paused_at ? "paused" : "under way";
}

function facts(shown, ended, isRunning) {
  const spec = Object.entries(shown.spec).filter(([, value]) => value !== null && typeof value !== "object");
  const words = spec.map(([name, value]) => `${name} ${value}`).join(", ");
  const took = duration(ended - Date.parse(shown.started_at));
  const clock = shown.clock_stopped_at ? "its clock stands still" : since(shown.deadline, "left");
  const rows = [
    ["by", shown.reason ? `${shown.actor}: “${shown.reason}”` : shown.actor],
    ["how", `${shown.strategy}${words ? `: ${words}` : ""}`],
    ["begun", since(shown.started_at, "ago")],
    isRunning ? ["time", [h("span", {}, `${took}, `), clock]] : ["took", took],
    shown.failed_routes ? ["failures", `${shown.failed_routes}; ${shown.last_failure ?? ""}`] : null,
    shown.back_reason ? ["went back", shown.back_reason] : null,
  ];
  return h("dl", { class: "facts" }, rows.filter(Boolean).map(([name, value]) => h("div", { "data-key": name }, h("dt", {}, name), h("dd", {}, value))));
}

function waves(cycles, began, ended, isRunning, deployment) {
  if (!cycles.length) return h("p", { class: "empty" }, isRunning ? deployment.reason : "It moved nothing.");
  const times = [...new Set(cycles.map((cycle) => cycle.step_no))].map((step) => cycles.filter((cycle) => cycle.step_no === step));
  const whole = Math.max(ended - began, 1);
  const rows = times.map((wave, place) => {
    const at = Date.parse(wave[0].at);
    const until = place + 1 < times.length ? Date.parse(times[place + 1][0].at) : ended;
    return row(wave, at - began, Math.max(until - at, 0), whole, isRunning && place + 1 === times.length);
  });
  return h("ol", { class: "waves" }, rows);
}

function row(wave, offset, span, whole, isLast) {
  const [own] = wave;
  const after = wave.at(-1);
  const percent = (part) => `${Math.min(100, (100 * part) / whole).toFixed(2)}%`;
  return h(
    "li",
    { "data-key": `step-${own.step_no}`, class: isLast ? "wave now" : "wave" },
    h("span", { class: "offset" }, `+${offset < 10000 ? `${(offset / 1000).toFixed(1)} s` : duration(offset)}`),
    h("span", { class: "change" }, picture(own.picture), after === own ? null : [h("i", { class: "then", "aria-label": "then" }, "›"), picture(after.picture)]),
    h("span", { class: "did" }, own.did),
    h("span", { class: "track", "aria-hidden": "true" }, h("i", { place: { left: percent(offset), width: percent(span) } })),
    h("span", { class: "span" }, isLast ? "" : span < 10000 ? `${(span / 1000).toFixed(1)} s` : duration(span)),
    h("span", { class: "dim reason" }, own.why),
  );
}
