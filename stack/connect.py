"""Finds the servers for a command: in the environment, else in the stack that runs."""

from collections.abc import MutableMapping

from stack.errors import StackError
from stack.home.folder import Home, find_home
from stack.home.state import read_state

_SERVING = "Only Envoy and replicas run, as 'rollway down --keep-replicas' left them: 'rollway up' starts the rest."


def export_urls(environ: MutableMapping[str, str]) -> None:
    """Set DATABASE_URL, REDIS_URL and ROLLWAY_HOME in `environ` where they are missing.

    Read from the state file of ROLLWAY_HOME (default ./.rollway). Raises StackError when no stack runs there.
    """
    home = find_home(environ)
    environ.setdefault("ROLLWAY_HOME", str(home.root))
    if environ.get("DATABASE_URL") and environ.get("REDIS_URL"):
        return
    state = read_state(home)
    if state is None or state.phase in {"stopping", "stopped", "serving"}:
        raise StackError(_SERVING if state and state.phase == "serving" and state.alive else _not_running(home))
    environ["DATABASE_URL"] = environ.get("DATABASE_URL") or state.database_url
    environ["REDIS_URL"] = environ.get("REDIS_URL") or state.redis_url


def _not_running(home: Home) -> str:
    return (
        f"No stack of Rollway runs in {home.root}: 'rollway up' starts one there, "
        "ROLLWAY_HOME names the folder of another, and DATABASE_URL and REDIS_URL name other servers."
    )
