"""Several passes over the same cases, in turns, so that a bad minute of the machine befalls them all."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar

Case = TypeVar("Case", bound=Hashable)
Result = TypeVar("Result")
Row = Mapping[str, Any]


def passes(*, full: bool) -> int:
    """How often each case is measured: enough for a median."""
    return 5 if full else 3


def in_turns(times: int, cases: Sequence[Case], run: Callable[[Case], Result]) -> dict[Case, list[Result]]:
    """Every case once, then every case again: the results of each, in the order of the passes."""
    results: dict[Case, list[Result]] = {case: [] for case in cases}
    for _ in range(times):
        for case in cases:
            results[case].append(run(case))
    return results


def middle(rows: Sequence[Row]) -> dict[str, Any]:
    """One row of the medians of each column; what is no number is that of the first row."""
    return {name: _middle([row[name] for row in rows]) for name in rows[0]}


def _middle(values: Sequence[Any]) -> Any:  # noqa: ANN401  (a cell of any type)
    numbers = [value for value in values if isinstance(value, int | float)]
    if not numbers:
        return values[0]
    found = median(numbers)
    return int(found) if found == int(found) and all(isinstance(number, int) for number in numbers) else found
