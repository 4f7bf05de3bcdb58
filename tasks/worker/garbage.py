"""How often Python looks for garbage that refers to itself: in a worker seldom, since its chunks leave hardly any."""

import gc

_YOUNG = 10_000
"""So many new objects are looked through at once. What a chunk makes, thousands, is freed at its end without a look."""


def collect_seldom() -> None:
    """For a process that is up: what it has imported stays for good and is not looked through again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG)
