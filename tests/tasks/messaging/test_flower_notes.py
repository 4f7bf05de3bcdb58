"""What Flower shows of messages, as a table: the name, and what stands as the arguments; None for a tick."""

from typing import Any

import pytest

from tasks.messaging.flower_notes import is_shown, notes_for_flower

IF_NEEDED, ROUTE = "rollway.do_deployment_lifecycle_if_needed", "rollway.do_route_lifecycle"
SCALE = {"request_id": "7", "deployment": "web", "desired_replicas": 3, "actor": "alice", "reason": "sale"}


@pytest.mark.parametrize(
    ("task", "named", "shown"),
    [
        (IF_NEEDED, {"lifecycle_type": "deploying", "sub_step": "provisioning"}, "deploying/provisioning"),
        (IF_NEEDED, {"lifecycle_type": "scaling", "sub_step": None}, "scaling"),
        (IF_NEEDED, {"lifecycle_type": "scaling", "sub_step": None, "interval": 2}, None),
        (IF_NEEDED, {"lifecycle_type": ["a list"]}, IF_NEEDED),
        (IF_NEEDED, {}, IF_NEEDED),
        (ROUTE, {"route_lifecycle_type": "start", "host": "gpu-2"}, "start on gpu-2"),
        (ROUTE, {"route_lifecycle_type": "stop"}, "stop on each host"),
        (ROUTE, {"route_lifecycle_type": "probe", "host": "gpu-2"}, None),
        (ROUTE, {"route_lifecycle_type": "sweep", "interval": 30}, None),
        (ROUTE, {"route_lifecycle_type": "dance"}, ROUTE),
        ("rollway.wake_what_is_due", {"interval": 1}, None),
        ("rollway.scale", {"payload": SCALE}, "rollway.scale"),
    ],
)
def test_a_name_says_what_happens_and_a_tick_has_none(task: str, named: dict[str, Any], shown: str | None) -> None:
    notes = notes_for_flower(task, [], named)
    assert notes["shadow"] == shown
    assert is_shown(notes) is (shown is not None)


@pytest.mark.parametrize(
    ("positional", "named", "about"),
    [
        ([], {"payload": SCALE}, "deployment='web' desired_replicas=3 actor='alice' reason='sale' request_id='7'"),
        ([{"deployment": "web"}], {}, "deployment='web'"),
        ([], {"payload": '{"deployment": "web"}', "signature": "x", "sender": "s", "sent_at": 1}, "deployment='web'"),
        ([], {"payload": "{", "signature": "x"}, ""),
        ([], {"payload": {"deployment": "web", "spec": {"env": {"KEY": "secret"}}}}, "deployment='web'"),
        ([], {"payload": {"rules": [{"header": "secret"}], "deployment": "a\x1bb"}}, "deployment='a�b'"),
        ([], {"payload": {"reason": "s" * 5000}}, f"reason='{'s' * 100}'"),
        ([], {"payload": dict.fromkeys(map(str, range(5000)), 1)}, " ".join(f"{n}=1" for n in range(300))[:1000]),
        ([], {"payload": 5}, ""),
        ([], {}, ""),
    ],
)
def test_of_a_command_its_plain_fields_are_shown_its_own_first(
    positional: list[Any], named: dict[str, Any], about: str
) -> None:
    assert notes_for_flower("rollway.scale", positional, named)["kwargsrepr"] == about
