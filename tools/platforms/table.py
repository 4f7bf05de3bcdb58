"""The platforms that Rollway is for. docs/installing.md has the same table."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Oldest:
    """The oldest system of a kind. `uv`: what uv calls it; `macos`: its version, where it is one."""

    said: str
    uv: str
    macos: str = ""


@dataclass(frozen=True, slots=True)
class Platform:
    """A kind of machine, and the oldest system on it that has a wheel of every pinned package."""

    name: str
    base: Oldest
    runtime: Oldest


PYTHONS: Sequence[str] = ("3.11", "3.12", "3.13")

PLATFORMS: Sequence[Platform] = (
    Platform(
        "Linux x86-64",
        base=Oldest("glibc 2.28", "x86_64-manylinux_2_28"),
        runtime=Oldest("glibc 2.31", "x86_64-manylinux_2_31"),
    ),
    Platform(
        "Linux arm64",
        base=Oldest("glibc 2.28", "aarch64-manylinux_2_28"),
        runtime=Oldest("glibc 2.31", "aarch64-manylinux_2_31"),
    ),
    Platform(
        "macOS arm64",
        base=Oldest("macOS 11", "aarch64-apple-darwin", "11.0"),
        runtime=Oldest("macOS 15", "aarch64-apple-darwin", "15.0"),
    ),
)
"""`base`: for requirements/base.txt; `runtime`: for requirements/runtime.txt, with the embedded servers."""
