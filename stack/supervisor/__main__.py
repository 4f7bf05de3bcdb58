"""The process that runs the stack: `python -m stack.supervisor HOME`, with the plan as JSON on its standard input."""

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from stack.home.folder import Home
from stack.part_specs import PLAN
from stack.supervisor.stop import stop_replicas
from stack.supervisor.supervise import Supervisor


def main(arguments: Sequence[str]) -> int:
    """Supervise the plan on standard input in the home `arguments[0]`. What it and all parts write is for us alone."""
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    words = sys.stdin.read()
    if not words:  # the process that started us died before it wrote our pid down
        return 1
    return Supervisor(Home(Path(arguments[0])), PLAN.validate_json(words), stop_replicas).run()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
