"""How garbage is collected in a process that is up: what it has imported stays for good."""

import gc

_YOUNG = 10_000
"""So many new objects are looked through at once. What a chunk or a table makes is freed at its end without a look."""


def collect_seldom() -> None:
    """Leave out what is there by now, and look through new objects seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG)
    gc.enable()  # a start goes without
