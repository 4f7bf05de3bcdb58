"""Each planted fault is found within a minute, and printed as a film."""

import pytest

from tools.prove.film import film
from tools.prove.planted.faults import FAULTS, Fault
from tools.prove.planted.meeting_faults import MEETING_FAULTS
from tools.prove.planted.subtle_faults import SUBTLE_FAULTS
from tools.prove.search import Search
from tools.prove.state import Left


@pytest.mark.parametrize("fault", [*FAULTS, *SUBTLE_FAULTS, *MEETING_FAULTS], ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_within_a_minute_and_shown_as_a_film(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = fault.start.state(Left(misfortunes=2, commands=2, together=2))
    for place in fault.places:
        monkeypatch.setattr(place, fault.wrong)
    found = Search(start).run()
    assert found.law is not None
    assert found.seconds < 60
    lines = film(start, found.path, found.law).splitlines()
    print("\n".join(lines))  # noqa: T201
    assert lines[0] == f"broken: {found.law}"
    assert len(lines) == len(found.path) + 2
    assert "■" in lines[1]
