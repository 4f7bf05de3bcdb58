"""Labels of hosts: their spelling, the hosts that have those of a revision, and sentences about missing labels.

ROLLWAY_HOST_LABELS="zone=a,disk=ssd"     the labels of a host
host                                      a label that every host has: its name
hosts: {zone: a}                          in a revision: only hosts with all of these labels take its replicas
spread: zone                              in a revision: its replicas are spread over the values of this label
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from domain.text.errors import RollwayError

HOST = "host"
"""The label whose value is the name of the host."""
MOST_LABELS = 16
_WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")
_MOST_SHOWN = 5

Labels = Mapping[str, str]


class NoHostFitsError(RollwayError):
    """No host that is known has the labels that the revision needs."""


def _word(text: str) -> str:
    if not _WORD.fullmatch(text):
        raise ValueError(
            f"{text!r} is refused: a label and its value are letters, digits, '-', '_', '.' and '/', 63 at most, "
            "such as zone and a"
        )
    return text


Word = Annotated[str, AfterValidator(_word)]
RequiredLabels = Annotated[dict[Word, Word], Field(max_length=MOST_LABELS)]


def labels_in(text: str) -> dict[str, str]:
    """The labels in a text such as zone=a,disk=ssd. Raises ValueError for any other text."""
    labels: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, value = part.partition("=")
        if name in labels or name == HOST:
            raise ValueError(part)
        labels[_word(name)] = _word(value)
    if len(labels) > MOST_LABELS:
        raise ValueError(text)
    return labels


def in_words(labels: Labels) -> str:
    """E.g. "disk=ssd, zone=a"."""
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))


def has_labels(required: Labels, host: str, labels: Labels) -> bool:
    """Whether the host of this name, with these labels, has all that are required."""
    return all((host if name == HOST else labels.get(name)) == value for name, value in required.items())


def value_of(label: str, host: str, labels: Labels) -> str | None:
    """The value of a host's label; None where it has none."""
    return host if label == HOST else labels.get(label)


def missing_label(required: Labels, hosts: Mapping[str, Labels]) -> str:
    """A clause that names a label which none of these hosts has; empty where one host has all.

    {zone: c}, and a: zone=a, b: zone=b     no host has zone=c; zone is a or b
    {rack: 7}, and nobody has a rack        no host has the label rack
    {zone: a, disk: ssd}, each elsewhere    no host has disk=ssd and zone=a together
    """
    if any(has_labels(required, host, labels) for host, labels in hosts.items()):
        return ""
    for name, value in sorted(required.items()):
        values = {value_of(name, host, labels) for host, labels in hosts.items()}
        if value not in values:
            return _none_has(name, value, filter(None, values))
    together = " and ".join(f"{name}={value}" for name, value in sorted(required.items()))
    return f"no host has {together} together"


def _none_has(name: str, value: str, values: Iterable[str]) -> str:
    others = sorted(values)
    if not others:
        return f"no host has the label {name}"
    names = " or ".join(others[:_MOST_SHOWN]) + (f" or {len(others) - _MOST_SHOWN} more" * (len(others) > _MOST_SHOWN))
    if name == HOST:
        return f"no host is called {value}; there is {names}"
    return f"no host has {name}={value}; {name} is {names}"


def why_unplaced(required: Labels, up: Mapping[str, Labels], down: Mapping[str, Labels]) -> str:
    """A clause that says why no host that is up takes a replica with these labels; empty where one does."""
    lack = missing_label(required, up)
    away = sorted(host for host, labels in down.items() if has_labels(required, host, labels))
    if not lack or not away:
        return lack.replace("no host", "no host that is up")
    names = ", ".join(away[:_MOST_SHOWN]) + (f" and {len(away) - _MOST_SHOWN} more" * (len(away) > _MOST_SHOWN))
    verb = "is" if len(away) == 1 else "are"
    return f"no host that is up has {in_words(required)}; {names}, with these labels, {verb} down"


def refuse_unfit(revision: str, required: Labels, hosts: Mapping[str, Labels]) -> None:
    """Raises NoHostFitsError where no known host, up or down, has the labels.

    While no host is known, nothing is refused: the first hosts may be about to start.
    """
    if hosts and (lack := missing_label(required, hosts)):
        assignable = {name: value for name, value in required.items() if name != HOST}
        remedy = f", or give a host ROLLWAY_HOST_LABELS={','.join(f'{n}={v}' for n, v in sorted(assignable.items()))}"
        raise NoHostFitsError(
            f"hosts: no host can take {revision}: {lack}; name labels that one host has{remedy if assignable else ''}",
            field="hosts",
            revision=revision,
        )
