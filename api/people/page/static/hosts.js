// The hosts: signs of life, replicas, and faults, with faulty hosts on top.
import { buttons, isOfHost, offerButtons } from "./ask.js";
import { h, morphChildren } from "./dom.js";
import { ask, insist, isFinal, watch } from "./stream.js";
import { say, setClock, since, tenths, tick } from "./words.js";

const TONES = { down: "bad", deaf: "bad", silent: "warn", up: "good" };
const stateOf = new Map();
let offered = [];

function draw(made) {
  morphChildren(document.getElementById("hosts"), h("div", {}, made));
}

async function refresh() {
  try {
    take((await ask("/v1/hosts")).items);
  } catch (error) {
    if (!isFinal(error)) throw error;
    draw(h("p", { class: "why warn" }, error.message));
  }
}

function take(hosts) {
  if (!hosts.length) return draw(h("p", { class: "empty" }, "No host is known yet: does a worker run?"));
  setClock(hosts[0].now);
  for (const { name, state } of hosts) {
    if (stateOf.has(name) && stateOf.get(name) !== state) say(`Host ${name} is ${state}`);
    stateOf.set(name, state);
  }
  const states = Object.keys(TONES);
  const order = (first, second) => states.indexOf(first.state) - states.indexOf(second.state) || (first.name < second.name ? -1 : 1);
  return draw(h("ul", { class: "rows", "data-key": "rows" }, [...hosts].sort(order).map(row)));
}

function row(host) {
  const { name, address, state, last_seen_at: lastSeen, contract, drained_at: drained, drained_by: by } = host;
  const from = { down: host.down_since, silent: lastSeen, deaf: host.deaf_since }[state];
  const labels = Object.entries(host.labels).sort();
  const replicas = Object.entries(host.replicas).sort().map(([status, count]) => `${count} ${status}`).join(", ");
  return h(
    "li",
    { class: `host ${TONES[state]}`, "data-key": name },
    h("span", { class: "name" }, name, " ", h("span", { class: "dim" }, address)),
    labels.length ? h("span", { class: "dim" }, labels.map(([label, value]) => `${label}=${value}`).join(", ")) : null,
    h("span", { class: "state" }, h("span", { class: "badge" }, state), from ? [" ", since(from, " ")] : null,
      drained ? [" ", h("span", { class: "badge warn" }, "drained"), ` by ${by} `, since(drained, "ago")] : null),
    h("span", {}, `replicas: ${replicas || "none"}`),
    h("span", { class: "dim" }, "seen ", since(lastSeen, "ago")),
    devices(host),
    others(host),
    clock(host),
    h("span", { class: "dim" }, `protocol ${contract}`),
    buttons(offered.filter(({ verb }) => suits(verb, host)), "", name),
    Object.keys(host.stays).length ? h("ul", { class: "stays" }, Object.entries(host.stays).sort().map(stay)) : null,
  );
}

/** Whether the command would change something now; the server has the last word. */
function suits(verb, { state, drained_at: drained }) {
  return { drain: !drained, undrain: drained, forget: state === "down" }[verb];
}

/** The used devices of each kind, with their owners: "gpu 2 of 4: 0 web, 1 web". */
function devices({ resources, held }) {
  const kinds = Object.keys(resources).sort().map((kind) => {
    const own = held.filter((each) => each.kind === kind);
    const [all, taken] = [Object.values(resources[kind]), own.map(({ amount }) => amount)].map((amounts) => amounts.reduce((sum, each) => sum + each, 0));
    const owners = own.map(({ device, deployment }) => [device, deployment].filter(Boolean).join(" ")).join(", ");
    return `${kind} ${taken} of ${all}${owners ? `: ${owners}` : ""}`;
  });
  return kinds.length ? h("span", { class: "dim" }, kinds.join("; ")) : null;
}

/** "device 1: 11 GB used by no replica", for each device that another program uses. */
function others({ memory_of_others: memory }) {
  const used = Object.values(memory).flatMap(Object.entries);
  const words = used.map(([device, gigabytes]) => `device ${device}: ${Math.round(gigabytes)} GB used by no replica`);
  return words.length ? h("span", { class: "off" }, words.join("; ")) : null;
}

function clock({ clock_offset_seconds: offset, is_clock_off: isOff }) {
  if (!isOff) return h("span", { class: "dim" }, "clock in sync");
  return h("span", { class: "off" }, `clock ${tenths(1000 * Math.abs(offset))} ${offset > 0 ? "ahead" : "behind"}`);
}

function stay([deployment, until]) {
  const link = h("a", { href: `/deployments/${encodeURIComponent(deployment)}` }, deployment);
  return h("li", {}, link, ` is here until ${until || "its replicas are up elsewhere"}`);
}

offerButtons((button) => ({ offered, fixed: { host: button.closest(".host").dataset.key } }), refresh);
insist(async () => {
  offered = (await ask("/v1/offered")).items.filter(isOfHost);
}).then(() => insist(refresh));
setInterval(() => document.visibilityState === "visible" && tick(), 1000);
watch(refresh);
