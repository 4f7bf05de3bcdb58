"""The console script, which stops where another project's package would be imported instead of Rollway's."""

import sys
from importlib.util import find_spec
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PACKAGES = ("api", "db", "domain", "runtime", "stack", "tasks", "traffic")


def main() -> int:
    """Run the command line, unless one of the packages is another project's."""
    for name in _PACKAGES:
        spec = find_spec(name)
        origin = spec.origin if spec else None
        if origin is None or _ROOT not in Path(origin).parents:
            sys.stderr.write(
                f"the package {name!r} that Python finds is not Rollway's: {origin}. Rollway is an application: "
                "install it in an environment of its own, as 'pipx install' does, and leave PYTHONPATH out.\n"
            )
            return 1
    from cli.main import main as run  # noqa: PLC0415 -- it imports the packages

    return run()
