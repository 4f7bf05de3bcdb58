"""What proxies are told of a canary, from the settings of its rollout as any release has stored them."""

from typing import Any
from uuid import UUID

import pytest

from domain.traffic.caller_match import Chosen, known_chosen
from domain.traffic.canary_shares import CanaryInTraffic, has_fresh_baseline
from domain.traffic.snapshot import Canary

ROLLOUT, YOUNG = UUID(int=2), (UUID(int=7), UUID(int=8))
FRESH = {"judge": {"baseline": "fresh"}}


def shared(spec: dict[str, Any] | None = None, weight: int | None = 500, stage: int = 1, **how: bool) -> Canary:
    ended = how.get("has_ended", False)
    return CanaryInTraffic(UUID(int=1), ROLLOUT, ended, True, weight, stage, 3, spec or {}, YOUNG).sharing  # noqa: FBT003


@pytest.mark.parametrize(
    ("spec", "is_fresh"),
    [
        (FRESH, True),
        ({"judge": {"baseline": "old"}}, False),
        ({"judge": {}}, False),
        ({"judge": None}, False),
        ({"judge": ["baseline"]}, False),  # of another release, or of another strategy
        ({}, False),
    ],
)
def test_a_baseline_is_fresh_where_the_judge_says_so(spec: dict[str, Any], *, is_fresh: bool) -> None:
    assert has_fresh_baseline(spec) is is_fresh
    assert shared(spec) == Canary(500, floor=3, baseline=frozenset(YOUNG) if is_fresh else None)
    for is_recent in (True, False):
        canary = CanaryInTraffic(UUID(int=1), ROLLOUT, True, is_recent, None, 1, 3, spec, YOUNG)  # noqa: FBT003
        assert canary.is_known_to_proxies is (is_recent or is_fresh)


@pytest.mark.parametrize(
    ("mirror", "weight", "stage", "mirrored"),
    [
        ({"share": "10%"}, 0, 1, 1000),
        ({"share": "100%", "seconds": 60}, 0, 2, 10_000),
        ({"share": "10%"}, 0, 0, 0),  # it has not begun
        ({"share": "10%"}, 1, 1, 0),  # requests have taken the place of copies
        ({"share": "10%"}, None, 1, 0),
        ({"share": "much"}, 0, 1, 0),
        ({"part": "10%"}, 0, 1, 0),
        ("10%", 0, 1, 0),
        (None, 0, 1, 0),
    ],
)
def test_a_stage_without_a_weight_gets_copies_as_far_as_its_share_can_be_read(
    mirror: Any, weight: int | None, stage: int, mirrored: int
) -> None:
    assert shared({"mirror": mirror}, weight, stage) == Canary(weight, mirrored=mirrored, floor=3)


def test_without_a_mirror_nothing_is_copied() -> None:
    assert shared({}, 0, 1) == Canary(0, floor=3)


@pytest.mark.parametrize(("sticky", "rollout"), [(True, ROLLOUT), (False, None), (None, None), ("yes", None)])
def test_callers_stay_on_their_side_by_the_cookie_of_the_rollout(sticky: Any, rollout: UUID | None) -> None:
    assert shared({"sticky": sticky}) == Canary(500, sticky=rollout, floor=3)


def test_of_a_canary_that_has_ended_its_cookie_and_its_baseline_are_left() -> None:
    spec = {**FRESH, "sticky": True, "mirror": {"share": "10%"}, "match": {"cookie": "beta"}}
    assert shared(spec, has_ended=True) == Canary(None, ROLLOUT, 0, frozenset(YOUNG))


@pytest.mark.parametrize(
    ("match", "chosen", "words"),
    [
        ({"header": "X-Beta"}, Chosen(header="x-beta"), "callers with the header x-beta"),
        ({"header": "x-beta", "value": "yes"}, Chosen(header="x-beta", value="yes"), "the header x-beta: yes"),
        ({"cookie": "beta"}, Chosen(cookie="beta"), "callers with the cookie beta"),
        ({"cookie": "beta", "value": "early"}, Chosen(cookie="beta", value="early"), "the cookie beta=early"),
    ],
)
def test_callers_are_chosen_by_a_header_or_a_cookie(match: Any, chosen: Chosen, words: str) -> None:
    assert shared({"match": match}) == Canary(500, floor=3, chosen=chosen)
    assert chosen.words.endswith(words)


@pytest.mark.parametrize("match", [None, {}, {"address": "10.0.0.1"}, {"header": "a", "cookie": "b"}])
def test_callers_whom_this_release_cannot_tell_apart_are_not_chosen(match: Any) -> None:
    assert known_chosen(match) is None
    assert shared({"match": match}) == Canary(500, floor=3)
