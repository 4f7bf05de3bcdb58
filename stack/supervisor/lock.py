"""One `up` or `down` at a time in a home."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from runtime.machine.file_lock import file_lock
from stack.errors import StackError, folder_errors
from stack.home.folder import Home

_PATIENCE_SECONDS = 120.0


@contextmanager
def one_at_a_time(home: Home, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of `home`; Calls `waiting` once when another process has it. StackError after 120 s."""
    with ExitStack() as held:
        with folder_errors(home.lock_file):
            try:
                held.enter_context(file_lock(home.lock_file, _PATIENCE_SECONDS, waiting))
            except TimeoutError:
                raise StackError(
                    f"Another 'rollway up' or 'rollway down' has been at work in {home.root} for two minutes."
                ) from None
        yield
