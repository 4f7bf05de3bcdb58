"""`make compose-test`: docker-compose.yml run from a fresh clone, with what happens to containers in real life.

On the Docker engine that answers here (DOCKER_HOST), with the real images; the image rollway:0.3.0 stays there.
Where none does, root may have an engine of our own started, with stand-ins for the images.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console

from tests.compose.engine import IsolatedDockerd, check_own_engine, given_engine, isolated_dockerd
from tests.compose.project import ROOT, Project
from tests.compose.stand_ins import build_stand_ins, download_wheels
from tests.compose.steps import OF_OUR_OWN_ENGINE, STEPS
from tests.support.docker.docker_engine import NoEngineError

STAND_INS = """\
STAND-INS, NOT THE REAL IMAGES: those of Postgres, Valkey, Envoy and Python are made of this machine's programs and the
servers of the wheels. The engine is our own, in a network that leads nowhere."""


def main() -> int:
    """Exit code 0 when every step passed, or when there is no engine, which is said."""
    parser = argparse.ArgumentParser(
        prog="make compose-test", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    default = str(Path(sys.base_prefix) / "bin" / "python3")
    parser.add_argument(
        "--python", default=default, type=Path, help="the Python of the stand-in (default: %(default)s)"
    )
    python = parser.parse_args().python
    say = Console(markup=False, highlight=False, soft_wrap=True).print
    with tempfile.TemporaryDirectory(prefix="rollway-compose-") as folder, ExitStack() as stack:
        try:
            url, own = stack.enter_context(_engine(python, Path(folder), say))
        except NoEngineError as error:
            say(f"SKIPPED, THE COMPOSE FILES WERE NOT RUN: {error}")
            return 0
        return _try(url, own, Path(folder) / "clone", say)


@contextmanager
def _engine(python: Path, folder: Path, say: Callable[[str], None]) -> Iterator[tuple[str, IsolatedDockerd | None]]:
    """The URL of an engine, and the engine itself where it is our own."""
    if url := given_engine():
        say(f"the engine at {url}, with the real images")
        yield url, None
        return
    check_own_engine()
    say(STAND_INS)
    download_wheels(python, ROOT / "requirements/base.txt", folder)
    with isolated_dockerd() as engine:
        build_stand_ins(engine.url, python, folder)
        yield engine.url, engine


def _try(url: str, own: IsolatedDockerd | None, folder: Path, say: Callable[[str], None]) -> int:
    project = Project(url, folder)
    steps = [partial(step, project) for step in STEPS]
    if own:
        steps += [partial(step, project, own) for step in OF_OUR_OWN_ENGINE]
    try:
        for step in steps:
            name, began = step.func.__name__.replace("_", " "), time.monotonic()
            say(f"{name}: {step()} ({time.monotonic() - began:.0f} s)")
    except BaseException:
        say(project.compose("logs", "--no-color", "--tail", "25"))
        say(f"FAILED: {name}; what was not well: {project.unwell()}")
        raise
    finally:
        project.compose("down", "--volumes", "--timeout", "20")
        assert project.containers() == {}
        shutil.rmtree(folder)
    say("all passed, and everything is taken down")
    return 0


if __name__ == "__main__":
    sys.exit(main())
