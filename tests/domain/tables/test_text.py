"""Text from elsewhere becomes text that can be stored and shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.text import storable

ANY_TEXT = st.text(st.characters(codec=None, categories=None))


@pytest.mark.parametrize(
    ("came", "kept"),
    [
        ("bye\0bye", "bye\ufffdbye"),
        ("\x1b]0;OWNED\x07\x1b[2J", "\ufffd]0;OWNED\ufffd\ufffd[2J"),
        ("50%\r100%\r\n", "50%\n100%\n"),
        ("a lone \ud83d half", "a lone \ufffd half"),
        ("\x9b2J", "\ufffd2J"),
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
