"""The ports and names of a stack's servers: chosen once, kept, and each of them alone."""

import json
import socket
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from stack.home.server_settings import Ports, ServerSettings, choose_settings, free_port
from stack.stack_errors import StackError
from tests.support.stack.small_stack import made_home


def test_the_settings_of_an_earlier_version_are_taken_over(tmp_path: Path) -> None:
    home = made_home(tmp_path)
    first = choose_settings(home, Ports(), lambda _: None)
    old = json.loads(home.servers_file.read_text())
    del old["envoy_node"]
    for name in ("api", "envoy", "envoy_stats"):
        del old["ports"][name]
    home.servers_file.write_text(json.dumps(old))

    moved: list[str] = []
    chosen = choose_settings(home, Ports(), moved.append)
    assert moved == []
    assert (chosen.ports.flower, chosen.postgres_password) == (first.ports.flower, first.postgres_password)
    assert len({chosen.ports.api, chosen.ports.envoy, chosen.ports.envoy_stats, 0}) == 4
    assert chosen.envoy_node.startswith(f"envoy-{socket.gethostname()}-")
    assert choose_settings(home, Ports(), moved.append) == chosen


def test_no_two_servers_get_the_same_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is drawn: one start in a hundred had a port twice, and the file kept it."""
    monkeypatch.setattr("random.randrange", lambda _: 0)
    home, moved = made_home(tmp_path), list[str]()
    chosen = choose_settings(home, Ports(api=free_port()), moved.append, with_metrics=["beat", "worker1"])
    assert_all_differ(chosen)

    doubled = replace(chosen, ports=replace(chosen.ports, envoy=chosen.ports.flower))
    home.servers_file.write_bytes(TypeAdapter(ServerSettings).dump_json(doubled))
    mended = choose_settings(home, Ports(), moved.append, with_metrics=["beat", "worker1"])
    assert_all_differ(mended)
    assert mended.ports.flower == chosen.ports.flower
    assert moved == [f"port {chosen.ports.flower} of envoy is in use, so it moves to {mended.ports.envoy}"]

    with pytest.raises(StackError, match="asked for twice: choose another with --envoy-port"):
        choose_settings(home, Ports(api=chosen.ports.api, envoy=chosen.ports.api), moved.append)


def assert_all_differ(settings: ServerSettings) -> None:
    ports = [*settings.ports.by_name.values(), *settings.metrics.values()]
    assert len({*ports, 0}) == len(ports) + 1, ports


def test_two_stacks_on_one_machine_have_proxies_of_different_names(tmp_path: Path) -> None:
    nodes = {choose_settings(made_home(tmp_path / name), Ports(), lambda _: None).envoy_node for name in ("a", "b")}
    assert len(nodes) == 2


def test_two_stacks_that_begin_at_once_do_not_share_a_port_for_callers(tmp_path: Path) -> None:
    """Envoys share a port without an error, of strangers too: half of the callers of each would meet the other."""
    port = free_port()
    with ExitStack() as claims:
        begun = choose_settings(made_home(tmp_path / "a"), Ports(envoy=port), lambda _: None, claims=claims)
        assert begun.ports.envoy == port
        with ExitStack() as others, pytest.raises(StackError, match=f"Port {port} on 127.0.0.1 is in use"):
            choose_settings(made_home(tmp_path / "b"), Ports(envoy=port), lambda _: None, claims=others)
        with socket.socket() as envoy:
            envoy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            envoy.bind(("127.0.0.1", port))
            envoy.listen()
            socket.create_connection(("127.0.0.1", port)).close()
