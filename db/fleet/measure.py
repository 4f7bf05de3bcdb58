"""A measure of the whole fleet: a gauge, with the query that reads it."""

from dataclasses import dataclass

MOST_NAMED = 100
"""Deployments that one measure names: those in the most trouble. More names would not tell more."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A gauge: its name and help, its labels, and a query whose columns are the labels and then the value."""

    name: str
    help: str
    labels: tuple[str, ...]
    query: str
