// The receipt of a rollout: what it promised and what was measured, who was waited for, who asked for what, and its seal.
import { h } from "../dom.js";
import { clock, tenths } from "../words.js";

/** The section. `receipt` and `seal`: as `/v1/rollouts/ID/receipt` has them. */
export function receiptCard({ receipt, seal }) {
  const { waits, acts } = receipt;
  return h(
    "section",
    { class: "card", "aria-labelledby": "receipt-head", "data-key": "receipt" },
    h("h2", { id: "receipt-head" }, seal ? `Receipt ${seal.number}` : "Receipt"),
    h("dl", { class: "facts" }, [...promises(receipt), sealed(seal)].map(([name, said, isKept]) =>
      h("div", {}, h("dt", {}, name), h("dd", { class: isKept ? null : "broken" }, said)))),
    list("Asked for meanwhile", "acts", acts, ({ at, actor, what, said }) => [clock(at), ` ${actor}: ${what.replaceAll("_", " ")}, ${said}`]),
    list("Waited for", "waits", waits, ({ after_wave: wave, seconds, waits_for: what, reason }) =>
      `after wave ${wave}, ${tenths(1000 * seconds)} for ${what}: ${reason}`),
  );
}

function promises({ promised, measured, replayed }) {
  const { equal, steps, refused, differing } = replayed;
  const again = `${equal} of ${steps} are decided today as they were then${refused ? `; Postgres refused ${refused}` : ""}`;
  const rows = [["steps", again, !differing.length]];
  if (!measured) return rows;
  const isBoth = promised.counts_stopping;
  const most = isBoth ? `${measured.most_live_and_stopping} live or stopping` : `${measured.most_live} live, ${measured.most_stopping} stopping next to them`;
  return [
    held("most", `at most ${promised.most_live} live`, `at most ${most}`, measured.is_ceiling_kept),
    held("fewest", `at least ${promised.fewest_serving} serving, unless a replica fails on its own`, `at least ${measured.fewest_serving} serving`, measured.is_floor_kept),
    ...rows,
  ];
}

const held = (name, promised, measured, isKept) => [name, `${isKept ? "kept" : "broken"}: promised ${promised}, measured ${measured}`, isKept];

function sealed(seal) {
  if (!seal) return ["seal", "Not sealed yet: a worker does it within a minute after the end.", true];
  const { is_intact: isIntact, is_joined: isJoined, sha256 } = seal;
  const before = isJoined === null ? "the one before is not kept, or there is none" : `the one before is ${isJoined ? "intact" : "CHANGED since then"}`;
  const own = isIntact ? "intact" : "CHANGED since it was sealed";
  return ["seal", [`${own}, ${before}; sha256 `, h("code", {}, sha256)], isIntact && isJoined !== false];
}

function list(title, key, items, line) {
  if (!items.length) return null;
  return h("details", { class: "fold", "data-key": key }, h("summary", {}, `${title}: ${items.length}`), h("ol", {}, items.map((each) => h("li", {}, line(each)))));
}
