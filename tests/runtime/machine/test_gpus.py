"""The GPUs of a machine: none without a driver, and what a driver says, by a stand-in for its library."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from domain.devices.needs import parse_resources
from runtime.machine.gpus import GpuMemory, gpus_by_kind

ASK = """
import json
from domain.devices.needs import parse_resources
from runtime.machine.gpus import GpuMemory, gpus_by_kind
kinds = gpus_by_kind()
memory = GpuMemory(parse_resources("gpu=auto,memory_gb=4", kinds))
memory.look()
print(json.dumps([kinds, memory.in_use]))
"""


def test_without_a_driver_there_are_no_gpus_and_nothing_is_known_of_their_memory() -> None:
    if gpus_by_kind():
        pytest.skip("this machine has GPUs")
    memory = GpuMemory(parse_resources("gpu=GPU-5d6f"))
    memory.look()
    assert memory.in_use == {}


def test_a_gpu_that_is_cut_is_its_slices_and_each_device_has_its_memory(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    driver = [compiler, "-shared", "-fPIC", str(Path(__file__).with_name("nvml.c"))]
    subprocess.run([*driver, "-o", str(tmp_path / "libnvidia-ml.so.1")], check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, check=True, capture_output=True, text=True)
    kinds, in_use = json.loads(done.stdout)
    assert kinds == {"gpu": ["GPU-1"], "gpu.1g": ["MIG-10"]}
    assert in_use == {"gpu": {"GPU-1": 11.2}, "gpu.1g": {"MIG-10": 1.5}, "memory_gb": {}}
