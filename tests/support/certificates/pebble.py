"""A real authority that speaks ACME, Pebble of Let's Encrypt: to it every host name is this machine."""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from tests.support.certificates.authorities import Authority
from tests.support.proxies import plain_http
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process
from tests.support.stack.waiting import eventually

MISSING = "NO PEBBLE, SO NO CERTIFICATE IS ORDERED HERE: 'make pebble' unpacks that of Debian, without root"
_HURRIED = {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"}


@dataclass
class Pebble:
    """An authority, and the name server that it asks. It looks for answers at two ports of 127.0.0.1."""

    process: Process
    names: Process
    trusted: Path
    management: str
    names_management: str

    @classmethod
    def beside(cls, folder: Path, http_port: int, tls_port: int) -> Self:
        """Skips the test where there is none."""
        path = f"{os.environ.get('PATH', '')}{os.pathsep}{Path(sys.prefix) / 'pebble/usr/bin'}"
        pebble, names = (shutil.which(name, path=path) for name in ("pebble", "pebble-challtestsrv"))
        if pebble is None or names is None:
            pytest.skip(MISSING)
        folder.mkdir()
        own = Authority.make()
        chain, key = own.certify("localhost").written(folder, "pebble")
        (folder / "ca.pem").write_text(own.pem)
        directory, management, dns, dns_management = (free_port() for _ in range(4))
        settings = {
            "listenAddress": f"127.0.0.1:{directory}",
            "managementListenAddress": f"127.0.0.1:{management}",
            "certificate": str(chain),
            "privateKey": str(key),
            "httpPort": http_port,
            "tlsPort": tls_port,
        }
        (folder / "pebble.json").write_text(json.dumps({"pebble": settings}))
        off = [f"-{door}=" for door in ("http01", "https01", "tlsalpn01")]
        names_command = [names, f"-dns01=127.0.0.1:{dns}", f"-management=127.0.0.1:{dns_management}", *off]
        names_command += ["-defaultIPv4=127.0.0.1", "-defaultIPv6="]
        command = [pebble, f"-config={folder / 'pebble.json'}", f"-dnsserver=127.0.0.1:{dns}"]
        return cls(
            Process(command, directory, folder / "pebble.log", f"https://localhost:{directory}/dir", _HURRIED),
            Process(names_command, dns_management, folder / "names.log", f"http://127.0.0.1:{dns_management}/"),
            folder / "ca.pem",
            f"https://localhost:{management}",
            f"http://127.0.0.1:{dns_management}",
        )

    def start(self) -> None:
        self.names.begin()
        eventually(lambda: plain_http.get(self.names.ready).status_code, what="a name server")
        self.process.start()

    def end(self) -> None:
        for process in (self.process, self.names):
            if process.process is not None:
                process.end(kill=True)

    @property
    def environment(self) -> dict[str, str]:
        """What workers are told, so that they ask this one."""
        return {
            "ROLLWAY_ACME_DIRECTORY": f"https://localhost:{self.process.port}/dir",
            "ROLLWAY_ACME_CA": str(self.trusted),
        }

    @property
    def root(self) -> str:
        """The certificate of those that it gives, in PEM."""
        return plain_http.get(f"{self.management}/roots/0").text

    def points_elsewhere(self, host: str) -> None:
        """Have a host name lead where nobody listens."""
        record = {"host": f"{host}.", "addresses": ["127.0.0.2"]}
        plain_http.post(f"{self.names_management}/add-a", json=record)

    def orders(self) -> int:
        """How many orders it has taken since it was started."""
        return self.process.log.read_text().count("Added order ")
