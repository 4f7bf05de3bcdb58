"""The resources of hosts and the needs of replicas: devices such as GPUs, and amounts such as memory.

    ROLLWAY_HOST_RESOURCES="gpu=4,memory_gb=240"    four devices, 0 to 3, and an amount of 240
    needs: {gpu: 1, memory_gb: 40}                  a device of its own, and 40 of the amount
    needs: {gpu: 0.5}                               half of a device; another replica may have the other half

A kind whose name ends with _gb is an amount. All other kinds are devices, each with an id.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from domain.text.errors import InvalidInputError

Capacity = Mapping[str, Mapping[str, float]]
"""Amounts by kind and device: {"gpu": {"0": 1, "1": 0.5}, "memory_gb": {"": 240}}. memory_gb has no device, so ""."""
Needs = Mapping[str, float]
"""The number of devices, or the amount, that a replica needs, by kind."""

VARIABLE = "ROLLWAY_HOST_RESOURCES"
AUTO = "auto"
GPU = "gpu"
OWN_DEVICES = "ROLLWAY_DEVICES"
VISIBLE = "CUDA_VISIBLE_DEVICES"
MOST_DEVICES = 1024
MOST_OF_AN_AMOUNT = 1_000_000
HALF = 0.5
_KIND = re.compile(r"[a-z][a-z0-9_.]{0,39}")
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,79}")
_EXAMPLE = "'gpu=4,memory_gb=240'"


def is_amount(kind: str) -> bool:
    return kind.endswith("_gb")


def _kind(name: str) -> str:
    if not _KIND.fullmatch(name):
        raise ValueError(
            "must be the name of a kind: lower-case letters, digits, '_' and '.', such as gpu or memory_gb"
        )
    return name


def _sound(needs: dict[str, float]) -> dict[str, float]:
    for kind, count in needs.items():
        if is_amount(kind):
            if not float(count).is_integer():
                raise ValueError(f"{kind}: must be a whole number, such as 40")
        elif count != HALF and not (float(count).is_integer() and count <= MOST_DEVICES):
            raise ValueError(f"{kind}: must be 0.5, half of a device, or a whole number of devices")
    return {kind: count if count == HALF else int(count) for kind, count in needs.items()}


WrittenNeeds = Annotated[
    dict[
        Annotated[str, AfterValidator(_kind)],
        Annotated[float, Field(gt=0, le=MOST_OF_AN_AMOUNT, allow_inf_nan=False)],
    ],
    AfterValidator(_sound),
]


def parse_resources(text: str, by_driver: Mapping[str, Sequence[str]] | None = None) -> Capacity:
    """The capacity in a text: "gpu=2,memory_gb=240"; with ids, "gpu=GPU-5d6f+GPU-77aa"; by the driver, "gpu=auto".

    `by_driver`: the ids that the driver reports, by kind. Raises InvalidInputError.
    """
    capacity: dict[str, Mapping[str, float]] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        kind, _, value = (part.strip() for part in entry.partition("="))
        if not _KIND.fullmatch(kind) or kind in capacity:
            raise _fault(f"{entry!r} must be a kind and a number, each kind once")
        if value == AUTO and not is_amount(kind):
            reported = {name: ids for name, ids in (by_driver or {}).items() if f"{name}.".startswith(f"{kind}.")}
            capacity |= {name: dict.fromkeys(ids, 1.0) for name, ids in reported.items()}
        else:
            capacity[kind] = _amount(entry, value) if is_amount(kind) else _devices(entry, value)
    return capacity


def _amount(entry: str, value: str) -> Mapping[str, float]:
    if not value.isdecimal() or not 0 < int(value) <= MOST_OF_AN_AMOUNT:
        raise _fault(f"{entry!r} must end with a whole number from 1 to {MOST_OF_AN_AMOUNT:,}")
    return {"": float(value)}


def _devices(entry: str, value: str) -> Mapping[str, float]:
    if value.isdecimal():
        if int(value) > MOST_DEVICES:
            raise _fault(f"{entry!r} must end with a number up to {MOST_DEVICES}")
        return {str(number): 1.0 for number in range(int(value))}
    ids = value.split("+")
    if len(set(ids)) < len(ids) or not all(map(_DEVICE.fullmatch, ids)):
        raise _fault(f"{entry!r} must end with a number of devices, with their ids joined by '+', or with auto")
    return dict.fromkeys(ids, 1.0)


def _fault(what: str) -> InvalidInputError:
    return InvalidInputError(f"{VARIABLE}: {what}, such as {_EXAMPLE}", field=VARIABLE)


def variables_of(devices: Capacity) -> dict[str, str]:
    """The variables by which a replica learns its devices: {"ROLLWAY_DEVICES": "gpu=0+1"}; none without devices."""
    kinds = [f"{kind}={'+'.join(ids)}" for kind, ids in devices.items() if not is_amount(kind)]
    return {OWN_DEVICES: ",".join(kinds)} if kinds else {}


def marks_of(value: str) -> dict[str, str]:
    """The texts for placeholders. For "gpu=0+1", {gpu} becomes "0,1", {gpu.0} "0", and {gpu.1} "1"."""
    marks: dict[str, str] = {}
    for entry in filter(None, value.split(",")):
        kind, _, ids = entry.partition("=")
        marks[f"{{{kind}}}"] = ids.replace("+", ",")
        marks |= {f"{{{kind}.{place}}}": device for place, device in enumerate(ids.split("+"))}
    return marks


def is_gpu(kind: str) -> bool:
    """Whether devices of this kind are GPUs, or slices of them."""
    return f"{kind}.".startswith(f"{GPU}.")


def gpus_of(devices: Capacity) -> list[str]:
    """The ids of the GPUs and of their slices among these devices."""
    return [device for kind, ids in devices.items() if is_gpu(kind) for device in ids]


def in_words(kind: str, count: float) -> str:
    """E.g. "a GPU", "half a GPU", "2 GPUs", "40 of memory_gb"."""
    if is_amount(kind):
        return f"{count:g} of {kind}"
    name = kind.upper() if kind == GPU else kind
    if count == HALF:
        return f"half a {name}"
    return f"a {name}" if count == 1 else f"{count:g} {name}s"
