"""A maintenance as callers and people meet it, and the pages that proxies answer with."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from domain.traffic.maintenance import (
    STORED,
    FailurePages,
    Maintenance,
    checked_header,
    checked_page,
    known_maintenance,
)

PLAIN = Maintenance(since=datetime(2026, 1, 1, 9, 30, tzinfo=UTC), by="anna")
IN_FULL = replace(PLAIN, reason="a new database", allow="x-from-inside: yes", page="<p>", retry_after_seconds=5)


def test_callers_are_asked_to_come_again_in_a_minute() -> None:
    assert PLAIN.retry_after_seconds == 60


@pytest.mark.parametrize(
    ("maintenance", "sentence"),
    [
        (PLAIN, "in maintenance since 2026-01-01 09:30 UTC, by anna; callers get 503"),
        (
            IN_FULL,
            (
                "in maintenance since 2026-01-01 09:30 UTC, by anna (a new database); callers get 503; "
                "who sends x-from-inside gets through"
            ),
        ),
    ],
)
def test_a_maintenance_says_since_when_and_who_gets_through(maintenance: Maintenance, sentence: str) -> None:
    assert maintenance.sentence == sentence


@pytest.mark.parametrize(
    ("allow", "allowed"),
    [("", ("", "")), ("x-in", ("x-in", "")), ("x-in: yes", ("x-in", "yes")), ("x-in: a:b", ("x-in", "a:b"))],
)
def test_a_header_gets_through_with_its_value_which_may_be_a_secret(allow: str, allowed: tuple[str, str]) -> None:
    maintenance = replace(IN_FULL, allow=allow)
    assert maintenance.allowed == allowed
    assert maintenance.public_part == replace(IN_FULL, allow=allowed[0])


def test_a_maintenance_is_read_as_it_is_stored() -> None:
    raw = STORED.dump_python(IN_FULL, mode="json")
    assert known_maintenance({**raw, "of_a_newer_release": 1}) == IN_FULL
    assert known_maintenance(None) is None


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("X-From-Inside", "x-from-inside"),
        ("X-From-Inside: Yes", "x-from-inside: Yes"),
        ("x-in:  a:b ", "x-in: a:b"),
        ("x-in:a", "x-in: a"),
    ],
)
def test_a_header_is_read_with_its_name_in_lower_case(value: str, read: str) -> None:
    assert checked_header(value) == read


@pytest.mark.parametrize("value", ["", "x in", "x-in:", "x-in: ", ": yes", "x-in: a\nb", "x-in: \x00"])
def test_what_is_no_header_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="must be a header, such as x-from-inside, or with its value"):
        checked_header(value)


def test_a_page_has_64_kib_at_most() -> None:
    assert checked_page("ä" * 32_768) == "ä" * 32_768
    with pytest.raises(ValueError, match="must be a page of 65536 bytes at most, with its styles in it"):
        checked_page("ä" * 32_768 + "a")


PAGES = TypeAdapter(FailurePages)


@pytest.mark.parametrize(
    ("written", "pages"),
    [
        ({502: "a", "503": "b", 504: "c"}, {"502": "a", "503": "b", "504": "c"}),
        ({503: "ä" * 8192}, {"503": "ä" * 8192}),
        ({}, {}),
    ],
)
def test_a_page_for_a_failure_is_named_by_its_status(written: Any, pages: dict[str, str]) -> None:
    assert PAGES.validate_python(written) == pages


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ({500: "a"}, "Input should be '502', '503' or '504'"),
        ({503: " "}, "must be HTML of 1 to 16384 bytes"),
        ({503: "ä" * 8192 + "a"}, "must be HTML of 1 to 16384 bytes"),
        ("page.html", "valid dictionary"),
    ],
)
def test_other_pages_are_refused(written: Any, fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        PAGES.validate_python(written)
