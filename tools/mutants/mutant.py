"""A mutant: one file of the code with one change, as text and as what Python imports instead."""

import ast
import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import accumulate
from pathlib import Path
from types import CodeType, ModuleType

from tools.mutants.operators import Change, changes_of, children_of


@dataclass(frozen=True, slots=True)
class Mutant:
    """`name` says what is changed where, without the folder, so that it outlives a move of the file."""

    path: Path
    name: str
    source: bytes

    @property
    def module(self) -> str:
        """As it is imported: domain.replicas.drain."""
        return ".".join(self.path.with_suffix("").parts).removesuffix(".__init__")

    def diff(self) -> str:
        """What changed, with a line of the file before and after it."""
        before, after = (text.decode().splitlines() for text in (self.path.read_bytes(), self.source))
        lines = difflib.unified_diff(before, after, str(self.path), str(self.path), n=1, lineterm="")
        return "\n".join(list(lines)[1:])


def all_mutants() -> list[Mutant]:
    """Of all that decides, file by file."""
    return [mutant for path in sorted(Path("domain").rglob("*.py")) for mutant in mutants_of(path)]


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Each change that can be made to this file, as a mutant."""
    source = path.read_bytes()
    stem = path.parent.name if path.stem == "__init__" else path.stem
    seen = Counter[str]()
    for where, change in _changes_in(ast.parse(source), (stem,)):
        name = " ".join(f"{'.'.join(where)}: {change.before} -> {change.after}".split())
        seen[name] += 1
        counted = name if seen[name] == 1 else f"{name} ({seen[name]})"
        yield Mutant(path, counted, _changed(source, change))


def _changes_in(node: ast.AST, where: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Change]]:
    inner = (*where, node.name) if isinstance(node, ast.FunctionDef | ast.ClassDef) else where
    yield from ((inner, change) for change in changes_of(node))
    for child in children_of(node):
        yield from _changes_in(child, inner)


def _changed(source: bytes, change: Change) -> bytes:
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    node = change.node
    start = starts[node.lineno - 1] + node.col_offset
    end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or node.col_offset)
    return source[:start] + change.text.encode() + source[end:]


class Imported(MetaPathFinder):
    """Lets this process import the mutant where it asks for the module; the file stays as it is."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._mutant.module:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None:
            spec.loader = _Loader(name, str(self._mutant.path), self._mutant.source)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, source: bytes) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, _name: str) -> CodeType:
        return compile(self._source, self.path, "exec")
