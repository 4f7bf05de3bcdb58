"""How garbage is collected in what runs long: what it has imported stays for good."""

import gc

_YOUNG = 10_000
"""The number of new objects that are looked through at once. Those of a chunk or a table are freed at its end."""
_WHILE_LOADING = 200_000


def collect_hardly() -> None:
    """Look through new objects hardly ever, until `collect_seldom`: at a start nearly all of them stay for good.

    A start that waits for its servers may take days, so it is not never. Call this before anything else is loaded.
    """
    gc.set_threshold(_WHILE_LOADING)


def collect_seldom() -> None:
    """Leave out what is there by now, and look through new objects seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG)
