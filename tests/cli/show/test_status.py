"""What `status` says of a policy: words, never Python's own writing of values."""

from cli.show.status import policy_words


def test_a_policy_is_told_in_words_whatever_it_is_made_of() -> None:
    judge = {"errors": {"allowed": "1%", "worse_than": 2.0}, "slow": None, "at_least": {"requests": 60, "seconds": 10}}
    policy = {
        "strategy": "canary",
        "spec": {"steps": ["5%", "50%"], "judge": judge, "sticky": True},
        "limits": {"timeout_seconds": 300.0},
    }
    assert policy_words(policy) == (
        "canary: steps 5% → 50%, judge (errors (allowed 1%, worse_than 2), at_least (requests 60, seconds 10)), "
        "sticky yes; timeout_seconds 300"
    )
