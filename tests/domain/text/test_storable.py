"""Text from elsewhere becomes text that can be stored and shown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.text.storable import DEEPEST, storable, unstorable

ANY_TEXT = st.text(st.characters(codec=None, categories=None))


@pytest.mark.parametrize(
    ("came", "kept"),
    [
        ("bye\0bye", "bye\ufffdbye"),
        ("\x1b]0;OWNED\x07\x1b[2J", "\ufffd]0;OWNED\ufffd\ufffd[2J"),
        ("50%\r100%\r\n", "50%\n100%\n"),
        ("a lone \ud83d half", "a lone \ufffd half"),
        ("\x9b2J", "\ufffd2J"),
        ("rollback of \u202e2v\u202c", "rollback of \ufffd2v\ufffd"),
        ("Grüße,\tZeile\nZeile 🚀", "Grüße,\tZeile\nZeile 🚀"),
    ],
)
def test_what_stores_and_terminals_refuse_or_obey_is_replaced(came: str, kept: str) -> None:
    assert storable(came) == kept


@given(ANY_TEXT)
def test_any_text_becomes_one_that_utf_8_takes_and_is_then_left_as_it_is(came: str) -> None:
    kept = storable(came)
    assert storable(kept) == kept
    assert "\0" not in kept.encode("utf-8").decode("utf-8")


def nested(levels: int, innermost: list[object] | tuple[object, ...] | None = None) -> Any:
    value: Any = [] if innermost is None else innermost
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"a": [0, None, True, 1.5, "Grüße 🚀", "\x1b"]}, None),
        ({"a": {"b": ["c", "\0"]}}, ("a.b.1", "a text cannot contain the character NUL; leave it out")),
        ({"a": {"b\0": 1}}, ("a.b\ufffd", "a text cannot contain the character NUL; leave it out")),
        (["\ud800"], ("0", "a text cannot contain half of a surrogate pair; write the whole character")),
        ({"a": float("nan")}, ("a", "must be a finite number")),
        ({"a": float("-inf")}, ("a", "must be a finite number")),
        ("\0", ("", "a text cannot contain the character NUL; leave it out")),
        (("a", ("b", "\0")), ("1.1", "a text cannot contain the character NUL; leave it out")),
        (nested(DEEPEST + 1), None),
        ((nested(DEEPEST),), None),
        (nested(DEEPEST + 1, ()), None),
        (
            nested(DEEPEST + 2, ()),
            (".".join("0" * (DEEPEST + 1)), "is nested more than 32 levels deep; make it flatter"),
        ),
        (nested(5000), (".".join("0" * (DEEPEST + 1)), "is nested more than 32 levels deep; make it flatter")),
    ],
)
def test_what_cannot_be_stored_is_found_with_its_place(value: object, fault: tuple[str, str] | None) -> None:
    assert unstorable(value) == fault


def test_a_list_that_stands_in_many_places_is_looked_at_again_only_where_it_is_deeper() -> None:
    wide = nested(1)
    for _ in range(DEEPEST):
        wide = [wide] * 10
    assert unstorable(wide) is None
    assert unstorable([wide, wide]) is not None
