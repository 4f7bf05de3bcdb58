"""`python -m tasks worker` and `python -m tasks beat`, with the options of Celery's commands of these names.

`celery -A tasks.app` does the same, but loads all of Celery's commands and Flower first, for up to half a second.
"""

import sys
from importlib import import_module

from tasks.worker.garbage import collect_hardly

_COMMANDS = {"worker": "celery.bin.worker", "beat": "celery.bin.beat"}


def main() -> None:
    collect_hardly()
    name, *options = sys.argv[1:]
    command = getattr(import_module(_COMMANDS[name]), name)
    context = import_module("celery.bin.base").CLIContext
    app = import_module("tasks.app").app
    command.main(options, prog_name=f"tasks {name}", obj=context(app=app, no_color=None, workdir=None))


if __name__ == "__main__":
    main()
