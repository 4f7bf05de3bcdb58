"""A real Docker engine to test with, the one that answers here or a dockerd of our own, and an image made of busybox.

Our own dockerd touches no packet filter and no other engine: private socket, data root and bridge. It needs root,
`dockerd` and `ip`; the image needs a static busybox. `make docker` unpacks what lacks of Debian's packages.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import docker
from docker.errors import DockerException

# of this process alone: two test sessions can run at once
BRIDGE = f"rollway{os.getpid() % 10**7}"


SUBNET = f"10.213.{os.getpid() % 250}.1/24"
LOCAL_SOCKET = "unix:///var/run/docker.sock"
TLS_FILES = {"cacert": "ca", "cert": "server", "key": "server-key"}
# what `make docker` unpacked comes first: its busybox is static
_UNPACKED = Path(sys.prefix) / "docker"
_PROGRAMS = [f"{_UNPACKED}/{folder}" for folder in ("usr/sbin", "usr/bin", "sbin", "bin")]
_PATH = os.pathsep.join([*_PROGRAMS, os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
_LIBRARIES = os.pathsep.join(f"{_UNPACKED}/{folder}/{os.uname().machine}-linux-gnu" for folder in ("usr/lib", "lib"))
_ENVIRONMENT = os.environ | {"PATH": _PATH, "LD_LIBRARY_PATH": _LIBRARIES}


class NoEngineError(Exception):
    """What was tried, in one sentence."""


class Dockerd:
    """A dockerd of our own, which can be killed and started again on the same data."""

    wrapper: tuple[str, ...] = ()

    def __init__(self, folder: Path, network: Sequence[str] = ()) -> None:
        self.folder = folder
        self.options = list(network)
        self.url = f"unix://{folder}/engine.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            *(*self.wrapper, found("dockerd"), "--host", self.url, "--pidfile", f"{self.folder}/engine.pid"),
            *("--data-root", f"{self.folder}/data", "--exec-root", f"{self.folder}/exec", *self.options),
        ]
        with (self.folder / "dockerd.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=_ENVIRONMENT, start_new_session=True)
        deadline = time.monotonic() + 30
        while not answers(self.url):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise NoEngineError(f"dockerd did not come up; its last words: {self.last_words()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """SIGTERM: it stops its containers and its containerd too."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    @property
    def pid(self) -> int:
        assert self._process, "it does not run"
        return self._process.pid

    def listen_by_tls(self, certificates: Path) -> str:
        """From the next start also at the URL that is returned, for clients with `certificates`/cert.pem."""
        _make_certificates(certificates)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        pem = [f"--tls{name}={certificates}/{file}.pem" for name, file in TLS_FILES.items()]
        self.options += ["-H", f"tcp://127.0.0.1:{port}", "--tlsverify", *pem]
        return f"tcp://127.0.0.1:{port}"

    def last_words(self) -> str:
        lines = (self.folder / "dockerd.log").read_text(errors="replace").splitlines()
        return lines[-1][:300] if lines else "none"


@contextmanager
def own_dockerd(bridge: str = "none") -> Iterator[Dockerd]:
    """Its containers share the network of this host, unless there is a bridge. Raises NoEngineError."""
    _check_root()
    # a short path: the address of a Unix socket has 108 bytes at most
    folder = Path(tempfile.mkdtemp(prefix="rollway-docker-"))
    untouched = ("--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false")
    server = Dockerd(folder, ["--bridge", bridge, *untouched])
    try:
        server.start()
        yield server
    finally:
        server.stop()
        # dockerd leaves it mounted
        subprocess.run(["umount", "-l", f"{folder}/exec/netns/default"], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def any_engine() -> Iterator[str]:
    """The URL of an engine that answers. Raises NoEngineError saying what was tried."""
    given = os.environ.get("DOCKER_HOST", LOCAL_SOCKET)
    if answers(given):
        yield given
        return
    try:
        _check_root()
        with _bridge(), own_dockerd(BRIDGE) as server:
            yield server.url
    except NoEngineError as error:
        raise NoEngineError(f"no Docker engine answers at {given}, and none can be started: {error}") from None


def answers(url: str) -> bool:
    """Whether a Docker engine does at this URL."""
    kind, _, place = url.partition("://")
    if kind == "unix" and not _listens(place):
        return False
    with suppress(DockerException, OSError), docker.APIClient(base_url=url, timeout=5) as api:
        return bool(api.ping())
    return False


def _listens(path: str) -> bool:
    """Asked first, because the SDK leaves a socket open when it cannot connect."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


def found(program: str) -> str:
    """Where a program of that name is. Raises NoEngineError without one."""
    path = shutil.which(program, path=_PATH)
    if path is None:
        raise NoEngineError(f"{program} is not installed, and not unpacked by 'make docker'")
    return path


def _check_root() -> None:
    if os.geteuid() != 0:
        raise NoEngineError("dockerd needs root, and this is another user")
    found("dockerd")


@contextmanager
def _bridge() -> Iterator[None]:
    try:
        for command in (f"link add {BRIDGE} type bridge", f"addr add {SUBNET} dev {BRIDGE}", f"link set {BRIDGE} up"):
            if (done := _ip(command)).returncode:
                raise NoEngineError(f"ip {command} failed: {done.stderr.strip()}")
        yield
    finally:
        _ip(f"link delete {BRIDGE}")


def _ip(command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [found("ip"), *command.split()], check=False, capture_output=True, text=True, env=_ENVIRONMENT
    )


def _make_certificates(folder: Path) -> None:
    """An authority, and a certificate by it for 127.0.0.1 and for the client, under the names that Docker expects."""
    authority = "-x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=authority -keyout ca-key.pem -out ca.pem"
    commands = [f"req {authority}"]
    for name, key, use in (("server", "server-key", "serverAuth"), ("cert", "key", "clientAuth")):
        (folder / f"{name}.ext").write_text(f"subjectAltName=IP:127.0.0.1\nextendedKeyUsage={use}\n")
        commands += [
            f"req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {key}.pem -out {name}.csr",
            f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca-key.pem -set_serial 1 -extfile {name}.ext -out {name}.pem",
        ]
    for command in commands:
        subprocess.run([found("openssl"), *command.split()], check=True, capture_output=True, cwd=folder)
