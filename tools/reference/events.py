"""The page about the types of events."""

from domain.outbox.cloud_events import MEANINGS
from tools.reference.markdown import page, table


def events_page() -> str:
    """What docs/reference/events.md holds."""
    rows = [(f"`{kind}`", meaning) for kind, meaning in MEANINGS.items()]
    return page("Events", "How subscribers are told of them: [events.md](../events.md).", table(("type", "when"), rows))
