// The receipt of a rollout: promises and measurements, waits, commands of people, and the seal.
import { h } from "../dom.js";
import { clock, tenths } from "../words.js";

/** The section. `receipt` and `seal`: from the answer of `/v1/rollouts/ID/receipt`. */
export function receiptCard({ receipt, seal }) {
  const { waits, acts } = receipt;
  return h(
    "section",
    { class: "card", "aria-labelledby": "receipt-head", "data-key": "receipt" },
    h("h2", { id: "receipt-head" }, seal ? `Receipt ${seal.number}` : "Receipt", download({ receipt, seal })),
    h("dl", { class: "facts" }, [...promises(receipt), sealed(seal)].map(([name, said, isKept]) =>
      h("div", {}, h("dt", {}, name), h("dd", { class: isKept ? null : "broken" }, said)))),
    list("Asked for meanwhile", "acts", acts, ({ at, actor, what, said }) => [clock(at), ` ${actor}: ${what.replaceAll("_", " ")}, ${said}`]),
    list("Waited for", "waits", waits, ({ after_wave: wave, seconds, waits_for: what, reason }) =>
      `after wave ${wave}, ${tenths(1000 * seconds)} for ${what}: ${reason}`),
  );
}

/** A download of the receipt, as `rollway receipt --json` prints it. */
function download(sealed) {
  const { deployment, from, to, rollout } = sealed.receipt;
  const text = encodeURIComponent(JSON.stringify(sealed, null, 2));
  return h("a", { class: "quiet", href: `data:application/json,${text}`, download: `receipt-${deployment}-${from}-${to}-${rollout}.json` }, "Download JSON");
}

function promises({ promised, measured, replayed, requests }) {
  const { equal, steps, refused, differing } = replayed;
  const again = `${equal} of ${steps} are decided today as they were then${refused ? `; Postgres refused ${refused}` : ""}`;
  const rows = [["Each step decided again", again, !differing.length], ["Requests", requests.said, true]];
  if (!measured) return rows;
  const isBoth = promised.counts_stopping;
  const most = isBoth ? `${measured.most_live_and_stopping} live or stopping` : `${measured.most_live} live, ${measured.most_stopping} stopping next to them`;
  return [
    promiseRow("Most replicas at once", `at most ${promised.most_live} live`, `at most ${most}`, measured.is_ceiling_kept),
    promiseRow("Fewest serving", `at least ${promised.fewest_serving} serving, unless a replica fails on its own`, `at least ${measured.fewest_serving} serving`, measured.is_floor_kept),
    ...rows,
  ];
}

const promiseRow = (name, promised, measured, isKept) => [name, `${isKept ? "kept" : "broken"}: promised ${promised}, measured ${measured}`, isKept];

function sealed(seal) {
  if (!seal) return ["Seal", "Not sealed yet: a worker does it within a minute after the end.", true];
  const { is_intact: isIntact, is_joined: isJoined, sha256 } = seal;
  const before = isJoined === null ? "the one before is not kept, or there is none" : `the one before is ${isJoined ? "intact" : "CHANGED since then"}`;
  const own = isIntact ? "intact" : "CHANGED since it was sealed";
  return ["Seal", [`${own}, ${before}; sha256 `, h("code", {}, sha256)], isIntact && isJoined !== false];
}

function list(title, key, items, line) {
  if (!items.length) return null;
  return h("details", { class: "fold", "data-key": key }, h("summary", {}, `${title}: ${items.length}`), h("ol", {}, items.map((each) => h("li", {}, line(each)))));
}
