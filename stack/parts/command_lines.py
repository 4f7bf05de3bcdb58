"""How a worker, beat, Flower and the servers are started: the same by the stack, by systemd and by hand."""

import sys

_CELERY = (sys.executable, "-m", "celery", "-A", "tasks.app")
MIGRATE = (sys.executable, "-m", "cli.main", "migrate")
API = (sys.executable, "-m", "api")
PEOPLE = (sys.executable, "-m", "api.people")
BEAT = (*_CELERY, "beat", "--pidfile=", "--loglevel", "INFO")
FLOWER_OPTIONS = (
    "--max_tasks=5000",
    "--purge_offline_workers=60",
    "--tasks_columns=name,kwargs,state,result,received,runtime,worker,uuid",
)


def worker(name: str) -> tuple[str, ...]:
    """A worker of this name; each of a host needs one of its own. Celery puts the host in for %h.

    Without -Q it takes from all queues of tasks/wire/queues.py, among them the one of the host that it finds itself on.
    """
    options = f"worker -P threads -c 4 --without-mingle --without-gossip -E -n {name}@%h --loglevel INFO"
    return (*_CELERY, *options.split())


def flower(address: str, port: int) -> tuple[str, ...]:
    """Flower, which listens there."""
    return (*_CELERY, "flower", f"--address={address}", f"--port={port}", *FLOWER_OPTIONS)
