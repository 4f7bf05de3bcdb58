"""The GPUs of this machine, which has none."""

import pytest

from domain.devices.needs import parse_resources
from runtime.machine.gpus import GpuMemory, gpus_by_kind


def test_without_a_driver_there_are_no_gpus_and_nothing_is_known_of_their_memory() -> None:
    if gpus_by_kind():
        pytest.skip("this machine has GPUs")
    memory = GpuMemory(parse_resources("gpu=GPU-5d6f"))
    memory.look()
    assert memory.in_use == {}
