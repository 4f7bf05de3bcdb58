"""The GPUs of this machine, as their driver reports them (NVML, by way of nvidia-ml-py)."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pynvml

from domain.devices.needs import GPU, Capacity

_GIGABYTE = 1_000_000_000


def gpus_by_kind() -> dict[str, tuple[str, ...]]:
    """The UUIDs of whole GPUs, and of the slices of GPUs that are cut (MIG): {"gpu": (...), "gpu.1g": (...)}.

    Empty without a driver.
    """
    kinds: dict[str, list[str]] = defaultdict(list)
    with _driver() as is_there:
        for gpu in _all_gpus() if is_there else ():
            slices = list(_slices(gpu))
            for part in slices:
                size = pynvml.nvmlDeviceGetAttributes_v2(part).gpuInstanceSliceCount
                kinds[f"{GPU}.{size}g"].append(_uuid(part))
            if not slices:
                kinds[GPU].append(_uuid(gpu))
    return {kind: tuple(ids) for kind, ids in kinds.items()}


@dataclass(slots=True)
class GpuMemory:
    """The memory in use on these devices, in gigabytes, as of the last look; without devices unknown to the driver."""

    devices: Capacity
    in_use: Capacity = field(default_factory=dict)
    _is_open: bool = False

    def look(self) -> None:
        """Read the memory in use again. Without a driver nothing is known.

        The driver stays open: where no other program uses it, each opening may take a second.
        """
        if not self._is_open:
            try:
                pynvml.nvmlInit()
            except pynvml.NVMLError:
                return
            self._is_open = True
        memory_by_uuid = dict(_memory_by_uuid())
        self.in_use = {
            kind: {device: memory_by_uuid[device] for device in ids if device in memory_by_uuid}
            for kind, ids in self.devices.items()
        }


def _memory_by_uuid() -> Iterator[tuple[str, float]]:
    for gpu in _all_gpus():
        for device in (gpu, *_slices(gpu)):
            try:
                memory = pynvml.nvmlDeviceGetMemoryInfo(device, pynvml.nvmlMemory_v2)  # without what the driver keeps
            except pynvml.NVMLError:  # a device that has no memory of its own, or is lost
                continue
            yield _uuid(device), memory.used / _GIGABYTE


@contextmanager
def _driver() -> Iterator[bool]:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield False
        return
    try:
        yield True
    finally:
        pynvml.nvmlShutdown()


def _all_gpus() -> Iterator[Any]:
    return map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))


def _slices(gpu: Any) -> Iterator[Any]:  # noqa: ANN401  (NVML's own handle)
    try:
        if pynvml.nvmlDeviceGetMigMode(gpu)[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
            return
    except pynvml.NVMLError:  # a GPU that cannot be cut
        return
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, number)
        except pynvml.NVMLError:  # no slice there
            continue


def _uuid(device: Any) -> str:  # noqa: ANN401
    uuid = pynvml.nvmlDeviceGetUUID(device)
    return uuid.decode() if isinstance(uuid, bytes) else str(uuid)
