"""`python -m tools.reference.rooms` prints each folder of the code with its sentence, and the layers of packages."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("cli", "api", "stack", "tasks", "runtime", "traffic", "db", "domain")


def rooms() -> dict[str, str]:
    """The first sentence of each package's docstring, by the path of the package."""
    files = [path for package in PRODUCT for path in sorted(ROOT.glob(f"{package}/**/__init__.py"))]
    return {str(path.parent.relative_to(ROOT)): _sentence(path) for path in files}


def _sentence(file: Path) -> str:
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def floors() -> dict[str, list[str]]:
    """The floors within each package that import-linter holds, by the path of the package, from the top."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = [contract for contract in project["tool"]["importlinter"]["contracts"] if contract["type"] == "layers"]
    return {
        container.replace(".", "/"): [", ".join(re.split(r" [|:] ", layer)) for layer in contract["layers"]]
        for contract in contracts
        for container in contract.get("containers", ())
    }


def printed() -> Iterator[str]:
    """A line for each package, and one for its floors below it."""
    of = floors()
    for room, sentence in rooms().items():
        yield f"{room:32} {sentence}"
        if room in of:
            yield f"  floors: {' → '.join(of[room])}"


if __name__ == "__main__":
    print("\n".join(printed()))  # noqa: T201
