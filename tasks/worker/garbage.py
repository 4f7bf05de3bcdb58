"""Garbage collection in long-running processes: what they have imported stays for good."""

import gc

_YOUNG = 10_000
"""The number of new objects between two looks through them. Those of a chunk or a table are freed at its end."""
_WHILE_LOADING = 200_000


def collect_hardly() -> None:
    """Look through new objects very seldom until `collect_seldom`: during a start nearly all of them stay for good.

    Not never, since a start may wait for its servers for days. Call this before anything else is loaded.
    """
    gc.set_threshold(_WHILE_LOADING)


def collect_seldom() -> None:
    """Leave out the present objects, and look through new ones seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG)
