"""Says what callers get, as proxies told within the last minute or two."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from db.views.callers import AnsweringView, LosingView


def callers_words(now: Sequence[AnsweringView]) -> Text | None:
    """A line for each revision that answers; red where requests fail; None where nobody asked, or no proxy told."""
    lines = [
        Text(_of_revision(each, is_alone=len(now) == 1), "red" if each.failed_per_second else "")
        for each in now
        if each.per_second
    ]
    return Text("\n").join(lines) if lines else None


def losing_words(found: Sequence[LosingView]) -> Iterator[Text]:
    """A sentence for each deployment whose callers get failures now."""
    for each in found:
        by = ", ".join(revision or "no replica was there" for revision in each.revisions)
        share = each.failed_per_second / each.per_second
        rates = f"{_rate(each.failed_per_second)} of {_rate(each.per_second)} requests/s"
        words = f"{rates} failed in the last 2 minutes ({share:.2%}): {by}"
        yield Text(f"! {each.deployment} loses requests: {words}", "red")


def _of_revision(each: AnsweringView, *, is_alone: bool) -> str:
    if not each.revision:
        return f"{_rate(each.failed_per_second)} requests/s found no replica"
    said = [f"{_rate(each.per_second)} requests/s"]
    for what, per_second in (("failed", each.failed_per_second), ("refused (4xx)", each.refused_per_second)):
        if per_second:
            said.append(f"{_rate(per_second)} {what} ({per_second / each.per_second:.2%})")
    if each.half_ms is not None:
        said.append(f"first byte: half within {each.half_ms} ms")
    if each.most_ms is not None:
        said.append(f"95 % within {each.most_ms} ms")
    words = ", ".join(said)
    return words if is_alone else f"{each.revision}: {words}"


def _rate(per_second: float) -> str:
    return f"{per_second:.0f}" if per_second >= 10 else f"{per_second:.2g}"  # noqa: PLR2004
