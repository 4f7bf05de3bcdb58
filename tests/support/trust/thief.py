"""A whole stack with neighbours, and what a thief tries on it: all that there is, at once."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import psutil

from db.access_tokens import create_token
from db.connection.transactions import in_transaction
from domain.installation.tokens import NewToken, Role
from domain.revisions.revision import RevisionSpec
from runtime.process.accounts import EACH, Accounts
from runtime.process.process_runtime import ProcessRuntime
from runtime.process.termination import stop_all
from runtime.protocol import ReplicaRequest
from stack.down import down
from stack.home.folder import Home
from stack.home.server_settings import load_settings
from stack.home.sockets import POSTGRES_SOCKET
from stack.home.stack_state import read_state
from stack.prepare import UpRequest
from stack.stack_status import StackStatus
from stack.supervisor.stop import stop_replicas
from stack.up import up
from tests.support.proxies import plain_http
from tests.support.rows.databases import engine_on
from tests.support.stack.waiting import eventually
from tests.support.workers.runtimes import SLEEPER, given_back, pid_of

EVERY = Accounts(EACH)
Loot = Mapping[str, Sequence[str]]
"""What a thief got, by what it tried: which of the ways worked."""

THIEF = """
import ctypes, json, os, socket, sys
with open(sys.argv[1]) as things:
    files, pids, ports, sockets = json.load(things)
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
def may(do, *arguments):
    try:
        return bool(do(*arguments))
    except OSError:
        return False
def reads(path):
    return open(path, "rb").read(1) is not None
def writes(path):
    return open(path, "ab") is not None
def enters(path):
    return os.chdir(path) is None and os.listdir(".") is not None
def ends(pid):
    return os.kill(pid, 0) is None
def traces(pid):
    if libc.ptrace(16, pid, None, None):
        return False
    os.waitpid(pid, 0)
    libc.ptrace(17, pid, None, None)
    return True
def connected(where):
    if isinstance(where, int):
        return socket.create_connection(("127.0.0.1", where), 5)
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(5)
    peer.connect(where)
    return peer
def connects(path):
    name = path.replace("@", "\\0")  # abstract ones are filled up to their end
    if path[0] != "@":
        folder, _, name = path.rpartition("/")
        os.chdir(folder)
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as peer:
            if may(lambda: peer.connect(name) is None):
                return True
def talks(where, word):
    with connected(where) as peer:
        peer.sendall(word.encode("latin-1"))
        answer = peer.recv(99)
    asks_for_a_password = answer[:1] == b"R" and answer[8] != 0
    return answer and not asks_for_a_password and not answer.startswith((b"-NOAUTH", b"HTTP/1.1 401", b"HTTP/1.0 401"))
def is_open(number):
    return os.fstat(number) is not None
got = {f"descriptor {number}": ["is_open"] for number in range(3, 1024) if may(is_open, number)}
for path in files:
    got[path] = [does.__name__ for does in (reads, writes, enters) if may(does, path)]
for name, pid in pids.items():
    got[f"environ of {name}"] = ["reads"] * may(reads, f"/proc/{pid}/environ")
    got[f"mem of {name}"] = ["reads"] * may(open, f"/proc/{pid}/mem", "rb")  # at its first byte there is nothing
    got[f"folder of {name}"] = [enters.__name__] * (may(enters, f"/proc/{pid}/cwd") or may(enters, f"/proc/{pid}/root"))
    got[name] = [does.__name__ for does in (ends, traces) if may(does, pid)]
for name, (where, word) in ports.items():
    got[name] = ["talks"] * bool(may(talks, where, word))
for path in sockets:
    got[f"socket {path}"] = ["connects"] * bool(may(connects, path))
print(json.dumps({"tried": len(got), "got": {name: does for name, does in got.items() if does}}))
"""


_TO_POSTGRES = "\0\0\0\x29\0\3\0\0user\0rollway\0database\0rollway\0\0"
_TO_PEOPLE = "GET /v1/deployments HTTP/1.0\r\n\r\n"


@dataclass(frozen=True)
class WaitContext:
    """A stack that runs, a neighbour of another deployment in it, and one of another home."""

    home: Home
    status: StackStatus
    neighbours: dict[str, int]

    @property
    def pids(self) -> dict[str, int]:
        """What runs, by its name."""
        parts = {part.name: part.pid for part in self.status.parts if part.pid}
        supervisor = {"supervisor": self.status.supervisor_pid} if self.status.supervisor_pid else {}
        return parts | supervisor | self.neighbours

    def thief(self, folder: Path) -> tuple[str, ...]:
        """The command of a thief that tries all there is; its last line is for `loot_of`."""
        settings = load_settings(self.home)
        assert settings
        sockets = settings.named_sockets
        ports = {
            "Valkey's socket": (str(sockets.valkey), "KEYS *\r\n"),
            "Postgres's socket": (str(sockets.postgres / POSTGRES_SOCKET), _TO_POSTGRES),
            "the socket for proxies": (str(sockets.discovery), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
            "people's port": (settings.ports.people, _TO_PEOPLE),
            "Flower's port": (settings.ports.flower, "GET /tasks HTTP/1.0\r\n\r\n"),
            "the fleet's metrics": (settings.ports.api, "GET /metrics/fleet HTTP/1.0\r\n\r\n"),
        }
        things = folder / f"things-{uuid4().hex[:6]}"
        things.write_text(json.dumps([self._found(), self.pids, ports, self.sockets()]))
        return ("python3", "-c", THIEF, str(things))

    def sockets(self) -> list[str]:
        """The Unix sockets of what runs here: paths, and names that begin with @ where there is no file."""
        found = set()
        for process in map(psutil.Process, self.pids.values()):
            names = (str(connection.laddr) for connection in process.net_connections("unix") if connection.laddr)
            found |= {name if name[0] in "@/" else f"{process.cwd()}/{name}" for name in names}
        return sorted(found)

    def loot_of(self, line: str) -> Loot:
        """What a thief says that it got."""
        said = json.loads(line)
        assert said["tried"] > len(self._found()) // 2 + 3 * len(self.pids), "it has tried them all"
        got: Loot = said["got"]
        return got

    def _found(self) -> list[str]:
        return [str(path) for path in (self.home.root, *self.home.root.rglob("*"))]


@contextmanager
def around(root: Path, other: Path) -> Iterator[WaitContext]:
    """A stack in `root` with an account for each deployment, and a home beside it."""
    home = Home(root / ".rollway")
    with ExitStack() as left:
        left.enter_context(given_back(home.root))
        left.enter_context(given_back(other))
        left.callback(stop_all, other, 0.1)
        left.callback(down, home, lambda _: None, stop_replicas)
        # on a busy machine a host may be silent for longer than usual, and its replicas would be replaced
        environ = {"ROLLWAY_REPLICA_USER": EACH, "ROLLWAY_HOST_SILENCE_SECONDS": "600"}
        status = up(UpRequest(home=home, environ=environ, workers=1), lambda _: None)
        yield WaitContext(home, status, {"neighbour": _neighbour(home), "neighbour in another home": _elsewhere(other)})


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A folder that everybody may read."""
    made = Path(subprocess.check_output(["mktemp", "--directory", "/tmp/thief-XXXXXX"], text=True).strip())
    made.chmod(0o755)
    yield made
    for path in made.iterdir():
        path.unlink()
    made.rmdir()


def asking(home: Home, role: Role, *deployments: str) -> httpx.Client:
    """Who shows a new token to the stack's server for people."""
    settings, state = load_settings(home), read_state(home)
    assert settings
    assert state
    secret = uuid4().hex
    token = NewToken(name=f"{role}-{secret[:6]}", role=role, deployments=deployments, days=1, actor="test")
    engine = engine_on(state.database_url)
    in_transaction(engine, lambda connection: create_token(connection, token, secret))
    engine.dispose()
    shown = {"authorization": f"Bearer {secret}"}
    return plain_http.Client(base_url=f"http://127.0.0.1:{settings.ports.people}", headers=shown, timeout=300)


def _neighbour(home: Home) -> int:
    """The process of a replica that the stack itself started: any other its worker would end at its next sweep."""
    spec = {"command": ["sleep", "600"], "env": {"TOKEN": "hunter2"}}
    with asking(home, Role.ADMIN) as owner:
        for path, body in (
            ("", {"deployment": "web", "desired_replicas": 1}),
            ("/web/revisions", {"name": "v1", "spec": spec}),
            ("/web/activate", {"revision": "v1"}),
        ):
            owner.post(f"/v1/deployments{path}", json=body).raise_for_status()
    runtime = ProcessRuntime(home.root, accounts=EVERY)
    return pid_of(eventually(lambda: next(iter(runtime.everyone()), None), what="the neighbour"))


def _elsewhere(other: Path) -> int:
    spec = RevisionSpec(command=SLEEPER, env={"TOKEN": "hunter2"})
    return pid_of(ProcessRuntime(other, accounts=EVERY).start(ReplicaRequest(uuid4(), "other", "other-1", spec)))
