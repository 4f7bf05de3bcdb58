"""The limits of the house: how long a file and a function, how full a folder. Complexity is ruff's to count (C901)."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE, FUNCTION, FOLDER, SMALL = 400, 40, 15, 60
PRODUCT = {"domain", "db", "runtime", "traffic", "tasks", "api", "cli", "stack"}
SHARED_NAMES = {"base": "the protocol of what stands beside it: of commands, of handlers, of strategies"}
"""The names of modules that stand in several folders, each with its reason."""


@cache
def sources() -> dict[str, str]:
    """Every Python file of the house, by its path."""
    files = [file for file in ROOT.glob("[!.]*/**/*.py") if file.relative_to(ROOT).parts[0] not in {"build", "dist"}]
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


@dataclass(frozen=True, slots=True)
class Facts:
    """The imports of a file and their lines, its functions with their lengths, classes, names and docstrings."""

    imports: frozenset[str]
    import_lines: int
    functions: tuple[tuple[str, int], ...]
    classes: tuple[str, ...]
    names: frozenset[str]
    docstrings: tuple[str, ...]


@cache
def facts() -> dict[str, Facts]:
    """The facts of every file. Trees are not kept: all of them need more memory than all that the tests import."""
    return {path: _facts_of(ast.parse(source)) for path, source in sources().items()}


def _facts_of(tree: ast.Module) -> Facts:
    nodes = list(ast.walk(tree))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return Facts(
        frozenset(name for node in imports for name in _imported_by(node)),
        sum((node.end_lineno or 0) - node.lineno + 1 for node in imports),
        tuple((function.name, _length(function)) for function in functions),
        tuple(node.name for node in nodes if isinstance(node, ast.ClassDef)),
        frozenset(names(nodes)),
        tuple(docstrings(nodes)),
    )


def _imported_by(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    match node:
        case ast.ImportFrom(module=str(module), names=names):
            yield module
            yield from (f"{module}.{each.name}" for each in names)
        case ast.Import(names=names):
            yield from (each.name for each in names)


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Its lines without its docstring: a ladder that is drawn for readers is no work to read."""
    first = function.body[0]
    is_documented = isinstance(first, ast.Expr) and ast.get_docstring(function) is not None
    drawn = (first.end_lineno or 0) - first.lineno + 1 if is_documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - drawn


def names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Functions, classes, arguments, variables."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name


def docstrings(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Of modules, classes, functions and fields."""
    for node in nodes:
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield text.strip()


def long_files() -> dict[str, int]:
    """Lines of imports do not count: a function that moves elsewhere splits no file that tells of it."""
    lengths = {path: len(source.splitlines()) - facts()[path].import_lines for path, source in sources().items()}
    return {path: length for path, length in lengths.items() if length > FILE}


def long_functions() -> dict[str, int]:
    lengths = {f"{path}::{name}": length for path, each in facts().items() for name, length in each.functions}
    return {name: length for name, length in lengths.items() if length > FUNCTION}


def test_no_file_has_more_than_400_lines_below_its_imports() -> None:
    assert long_files() == {}


def test_no_function_has_more_than_40_lines() -> None:
    assert long_functions() == {}


def test_no_folder_has_more_than_15_modules() -> None:
    modules = [path for path in map(Path, sources()) if path.stem != "__init__" and path.parts[0] != "migrations"]
    counted = Counter(str(path.parent) for path in modules)
    assert {folder: count for folder, count in counted.items() if count > FOLDER} == {}


def test_no_small_file_has_a_single_reader() -> None:
    """What one other file alone imports belongs there, unless it is long enough to be a story."""
    modules = {path.removesuffix(".py").replace("/", "."): path for path in sources() if Path(path).parts[0] in PRODUCT}
    readers: dict[str, set[str]] = {path: set() for path in modules.values()}
    for path in readers:
        for imported in facts()[path].imports:
            if modules.get(imported, path) != path:
                readers[modules[imported]].add(path)
    small = {path for path in readers if len(sources()[path].splitlines()) < SMALL and "/__" not in path}
    assert sorted(path for path in small if len(readers[path]) == 1) == []


def test_no_module_name_stands_in_two_folders() -> None:
    stems = Counter(Path(path).stem for path in sources() if Path(path).parts[0] in PRODUCT and "/__" not in path)
    assert {stem for stem, count in stems.items() if count > 1} == set(SHARED_NAMES)


def test_no_class_name_stands_twice() -> None:
    places: dict[str, list[str]] = {}
    for path, each in facts().items():
        if Path(path).parts[0] in PRODUCT:
            for name in each.classes:
                places.setdefault(name, []).append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


PRONOUNS = ("It ", "It.", "It,", "They", "Them", "Its ", "Their ", "Those", "These ", "Both ")
BEGIN_WITHOUT_A_SUBJECT = (*PRONOUNS, "Of ", "The same")


def test_every_docstring_says_what_it_is_about() -> None:
    found = {
        f"{path}: {text.partition(chr(10))[0]}"
        for path, each in facts().items()
        if Path(path).parts[0] not in {"tests", "tools", "migrations", "examples"}
        for text in each.docstrings
        if text.startswith(BEGIN_WITHOUT_A_SUBJECT)
    }
    assert found == set()


SAY_NOTHING = {"one", "thing", "stuff", "tmp", "utils", "helpers", "manager", "common"}


def test_no_name_says_nothing() -> None:
    empty = {path: SAY_NOTHING.intersection((Path(path).stem, *each.names)) for path, each in facts().items()}
    assert {path: found for path, found in empty.items() if found} == {}
