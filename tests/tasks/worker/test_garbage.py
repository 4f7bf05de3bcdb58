"""The garbage collector of what runs long: what was imported is left out, and what is made is looked through seldom."""

import subprocess
import sys

_SAID = """
import gc
from tasks.worker.garbage import collect_hardly, collect_seldom
others = gc.get_threshold()[1:]
collect_hardly()
print(gc.get_threshold()[0], gc.isenabled())
collect_seldom()
print(gc.get_freeze_count() > 1000, gc.get_threshold()[0], gc.get_threshold()[1:] == others, gc.isenabled())
"""


_SERVED = """
import asyncio, gc
import uvicorn
from api.serving import QuietServer
async def app(scope, receive, send): ...
server = QuietServer(uvicorn.Config(app, lifespan="off"))
server.config.load()
server.should_exit = True
asyncio.run(server.main_loop())
print(gc.get_freeze_count() > 1000, gc.get_threshold()[0])
"""


def test_imports_are_frozen_and_many_objects_are_looked_through_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", _SAID], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.split() == ["200000", "True", "True", "10000", "True", "True"]


def test_so_does_a_server_whose_tables_have_ten_thousand_replicas() -> None:
    done = subprocess.run([sys.executable, "-c", _SERVED], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.split() == ["True", "10000"]
