"""E-values: how much evidence there is against a null hypothesis, at every moment.

An e-value starts at 1 and is expected to stay at or below 1 while the null is true. So the chance that it ever reaches
1 / a is at most a, however often one looks (Ville's inequality, 1939), and one may look each second and stop at once.
Everything is a sum of logarithms, in the order of the intervals, so that the same intervals give the same numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from domain.model.canary import BothSides, EValue

_HARM = (1.5, 2, 3, 5, 10, 30)
_NO_WORSE = (1, 0.5)
_GOOD = (0, 0.1, 0.25, 0.5)


@dataclass(frozen=True, slots=True)
class Counts:
    """The tally of one interval: the requests of each side, and the failures.

    `shares`: the lowest and the highest share that the canary had of what was sent while these requests were; None says
    that of this interval. `waiting`: what is under way to the canary beyond its share.
    `answered`: how many of the canary's ended; None says all.
    """

    canary: int
    canary_failed: int
    control: int
    control_failed: int
    shares: tuple[float, float] | None = None
    waiting: float = 0.0
    answered: int | None = None

    @property
    def lowest_and_highest(self) -> tuple[float, float]:
        """The shares; 0 where one side had nothing."""
        own = self.canary / (self.canary + self.control) if self.canary and self.control else 0.0
        return self.shares or (own, own)

    def added_to(self, tally: BothSides) -> BothSides:
        return BothSides(
            tally.canary + self.canary,
            tally.canary_failed + self.canary_failed,
            tally.control + self.control,
            tally.control_failed + self.control_failed,
            tally.answered + (self.canary if self.answered is None else self.answered),
        )


def harm(before: EValue, counts: Counts, worse_than: float) -> EValue:
    """The log e-value against "the canary fails at most `worse_than` times as often as the control" after it.

    Of the failures of an interval each is the canary's with probability at most θ0 = w·r / (w·r + 1 - w), where r is
    `worse_than` and w the canary's share of the requests. Against it stand the shares θλ of a canary that fails λ times
    as often as that:

        E = mean over λ of  Π (θλ / θ0)^failures of the canary · ((1 - θλ) / (1 - θ0))^failures of the control

    Errors that hit both sides, traffic that comes and goes and weights that change cancel out, for only the split of
    the failures is used: Lindon & Malek, "Anytime-Valid Inference for Multinomial Count Data", NeurIPS 2022,
    arXiv 2011.03567; Turner, Ly & Grünwald, arXiv 2106.02693, for two streams. An interval is a batch: given its sums
    the canary's failures are hypergeometric, and E is convex in them (Hoeffding 1963).

    A failure may come long after its request was sent, when w was another. Who is sent to the canary by chance, with
    probability w, fails there with probability θ0(w) at most, whenever it does. θ0 grows with w and E falls with θ0, so
    that with the highest w of the time since then E stays a supermartingale for each of them. That holds for the
    weight; what is known here is the share that was sent, and simulated canaries show how near it comes. A failure that
    comes more than 64 looks after its weight fell would be compared with too small a w: no rollout lowers one that is
    judged, but to leave.
    """
    _, highest = counts.lowest_and_highest
    failed = (counts.canary_failed, counts.control_failed)
    logs = _split(before.logs, highest, failed, worse_than, [worse_than * times for times in _HARM])
    return EValue(max(before.highest, _mean(logs)), logs)


def good_enough(before: EValue, counts: Counts, here: BothSides, worse_than: float, allowed: float) -> EValue:
    """The log e-value against "it fails more often than `allowed`, and than twice `worse_than` times the control".

    The mean of two, for the null is that both are so: the split of the failures turned round, and the number of clean
    answers against the rate q that is allowed:  E = mean over q' < q of (q'/q)^failed · ((1 - q')/(1 - q))^clean
    The lowest share is taken here. What is under way to the canary beyond its share counts as failed until it ends.
    `here` has this interval.
    """
    lowest, _ = counts.lowest_and_highest
    logs = _split(before.logs, lowest, (counts.canary_failed, counts.control_failed), 2 * worse_than, _NO_WORSE)
    relative = _mean(_split(logs, lowest, (counts.waiting, 0), 2 * worse_than, _NO_WORSE))
    clean, lost = here.answered - here.canary_failed, here.canary_failed + counts.waiting
    absolute = _mean([_clean(clean, lost, rate * allowed, allowed) for rate in _GOOD])
    return EValue(max(before.highest, _mean((absolute, relative))), logs)


def _split(
    logs: tuple[float, ...], share: float, failed: tuple[float, float], boundary: float, ratios: Sequence[float]
) -> tuple[float, ...]:
    """The logarithms after one interval with this share of the canary; `failed`: (canary's, control's)."""
    logs = logs or (0.0,) * len(ratios)
    canary, control = failed
    if not share or not (canary or control):
        return logs
    return tuple(
        log + canary * for_canary + control * for_control
        for log, (for_canary, for_control) in zip(logs, _factors(share, boundary, ratios), strict=True)
    )


def _factors(share: float, boundary: float, ratios: Sequence[float]) -> list[tuple[float, float]]:
    """The amounts that a failure of the canary, and one of the control, add to the logarithm of each alternative."""
    null = _theta(share, boundary)
    thetas = [_theta(share, ratio) for ratio in ratios]
    return [(math.log(theta / null), math.log((1 - theta) / (1 - null))) for theta in thetas]


def harm_at_once(share: float, worse_than: float, failed: int, others: int) -> float:
    """The log e-value of `harm` of one interval that has it all, where the canary has at most this share."""
    return harm(EValue(), Counts(0, failed, 0, others, (share, share)), worse_than).highest


def _theta(share: float, ratio: float) -> float:
    return share * ratio / (share * ratio + 1 - share)


def _clean(clean: int, failed: float, rate: float, allowed: float) -> float:
    if failed and not rate:
        return -math.inf
    return (failed * math.log(rate / allowed) if failed else 0.0) + clean * math.log((1 - rate) / (1 - allowed))


def _mean(logs: Sequence[float]) -> float:
    """The logarithm of the mean of the values with these logarithms."""
    highest = max(logs)
    if highest == -math.inf:
        return highest
    return highest + math.log(math.fsum(math.exp(log - highest) for log in logs) / len(logs))
