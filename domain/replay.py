"""A step decided once more from what is on record of it: stored == replayed, as long as the code decides the same."""

import json
from typing import Any

from domain.errors import InvalidInputError
from domain.handlers import HANDLERS
from domain.recording import decision_json, inputs_from_json


def replay_step(inputs: dict[str, Any], phase: str) -> dict[str, Any]:
    """The decision that the handler named `phase` makes from a stored step's inputs, as `decision_json` has it.

    It differs from the stored one when the code has changed since, or when Postgres refused to write what was decided:
    such a step is stored as an error that no decision made. Raises InvalidInputError for an unknown phase.
    """
    handler = next((known for known in HANDLERS.values() if known.name == phase), None)
    if handler is None:
        names = ", ".join(known.name for known in HANDLERS.values())
        raise InvalidInputError(f"phase must be one of {names}, not {phase!r}", field="phase")
    deployment, now = inputs_from_json(inputs)
    (classified,) = handler.execute([deployment], now).decisions
    replayed: dict[str, Any] = json.loads(decision_json(classified))
    return replayed
