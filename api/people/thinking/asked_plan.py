"""A plan that is to be made, as one process tells the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any

from domain.foresight.plan.subject import Planned

QUESTION = Struct(">Q")
"""How many bytes of a question follow."""
ANSWER = Struct(">dQ")
"""The seconds of processor time that an answer took, and how many bytes of it follow."""


@dataclass(frozen=True, slots=True)
class AskedPlan:
    """The plan of one deployment, on its way to `revision`. `beside`: what is answered beside it."""

    planned: Planned
    deployment: str
    revision: str
    beside: Mapping[str, Any]
