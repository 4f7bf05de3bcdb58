"""YAML as `apply` reads it: anything that YAML would silently drop is a fault, and faults name their line.

Neither its size nor its aliases make it long to read, and no number is one in YAML 1.1 and another one in YAML 1.2.
"""

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError
from yaml.reader import ReaderError

from domain.commands.registry import MOST_COMMAND_BYTES
from domain.text.errors import FieldPath
from domain.text.storable import DEEPEST

MOST_YAML_BYTES = 2 * MOST_COMMAND_BYTES
"""A command is shorter as JSON than as YAML with its indentation and comments."""
_MOST_VALUES = 100_000
"""A list counts in each place where an alias puts it; what a command may have is fewer."""
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_SAME_NUMBER = re.compile(r"[-+]?(0|[1-9]\d*|0x[\da-fA-F]+|(\.\d+|\d+\.\d*)([eE][-+]\d+)?|\.(inf|Inf|INF|nan|NaN|NAN))")
"""Numbers of YAML 1.1 that YAML 1.2 reads alike: 010 is 8 in one and 10 in the other, and 1:30 is 90 or a text."""

_NO_SUCH_VALUE = (ValueError, KeyError, AttributeError, TypeError, OverflowError)
"""The errors of PyYAML for a text that does not fit its tag: a date in month 13, a number of 5,000 digits."""


TOO_LONG = f"has more than {MOST_YAML_BYTES // 1024} KiB, which are the most; put what is large into a file of its own"


class StrictLoader(yaml.SafeLoader):
    """Refuses a field that occurs twice, of which YAML would silently keep the last, and endless nesting."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0
        self._sizes: dict[yaml.Node | None, int] = {}
        self._before = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Raises ComposerError at the first list or field that is too deep, too large, or an unclear number."""
        event = self.peek_event()  # type: ignore[no-untyped-call]  # its stub has no types
        begins = event.start_mark
        if self._depth > DEEPEST:
            problem = f"is nested more than {DEEPEST} levels deep; make it flatter"
            raise ComposerError(None, None, problem, begins)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent) and node not in self._sizes and not isinstance(node, yaml.ScalarNode):
            raise ComposerError(None, None, "a list or fields cannot hold themselves", begins)
        if node is not None and (problem := self._fault_of(node, index)):
            raise ComposerError(None, None, problem, begins)
        return node

    def _fault_of(self, node: yaml.Node, index: object) -> str:
        """The fault of a node; `index`: in a mapping the name of the field."""
        if isinstance(node, yaml.ScalarNode):
            if node.style or node.tag not in _NUMBERS or _SAME_NUMBER.fullmatch(node.value):
                return ""
            if self.resolve(yaml.ScalarNode, node.value, (True, False)) != node.tag:  # type: ignore[no-untyped-call]  # as above
                return ""  # no number at all, whatever its tag says
            field = f"{index.value}: " if isinstance(index, yaml.ScalarNode) else ""
            return f"{field}{node.value} is not the same number to every reader of YAML; write it plainly, or quote it"
        if node not in self._sizes:
            inner = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
            self._sizes[node] = 1 + sum(self._sizes.get(part, 1) for part in inner)
        is_too_large = self._before + self._sizes[node] > _MOST_VALUES
        self._before += 0 if self._depth else self._sizes[node]
        return f"more than {_MOST_VALUES:,} values are too many" if is_too_large else ""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002  (PyYAML's own)
        """Raises ConstructorError for a value that does not fit its form or its tag; it may be a secret."""
        try:
            return super().construct_object(node, deep)
        except _NO_SUCH_VALUE:
            problem = f"this is no valid {node.tag.rpartition(':')[2]}; quote it if it is meant as text"
            raise ConstructorError(None, None, problem, node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002  (as above)
        """Raises ConstructorError naming the field."""
        keys: set[object] = set()
        for key in self._keys(node):
            if key.value in keys:
                raise ConstructorError(None, None, f"{key.value} is there twice", key.start_mark)
            keys.add(key.value)
        return super().construct_mapping(node, deep)

    @staticmethod
    def _keys(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
        """The keys; none of a node that is no mapping, though its tag says so."""
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        return (key for key, _ in pairs if isinstance(key, yaml.ScalarNode) and key.value != "<<")


def documents_of(text: str) -> list[object]:
    """The YAML documents of `text`. Raises ValueError with the line, the fault and what would be right."""
    if len(text) > MOST_YAML_BYTES:
        raise ValueError(TOO_LONG)
    loader = StrictLoader("")
    try:
        loader = StrictLoader(text)
        documents = []
        while loader.check_node():
            documents.append(loader.get_data())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ValueError(f"{_place(mark)}{error.problem or 'is no YAML'}") from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ValueError(f"line {line}: the character U+{error.character:04X} cannot stand in YAML") from None
    except _NO_SUCH_VALUE:  # of an escape such as "\UFFFFFFFF"
        raise ValueError(f"{_place(loader.get_mark())}a number here is too great for YAML") from None
    return documents


def lines_in(text: str) -> Callable[[FieldPath], int | None]:
    """The line of a field, whose path begins with the number of its document, in a text that `documents_of` reads.

    A field that is not there has the line of what it is missing in; a document that is a list counts as its items.
    """
    loader = StrictLoader(text)
    roots: list[yaml.Node] = []
    while loader.check_node():
        if (node := loader.get_node()) is not None and node.tag != "tag:yaml.org,2002:null":
            roots.append(node)
    items = roots[0].value if len(roots) == 1 and isinstance(roots[0], yaml.SequenceNode) else roots
    return lambda path: _line(items, path)


def _line(items: Sequence[yaml.Node], path: FieldPath) -> int | None:
    number, inner = path[:1], path[1:]
    if not number or not isinstance(number[0], int) or number[0] >= len(items):
        return None
    node = items[number[0]]
    line = node.start_mark.line + 1
    for part in inner:
        pair = next(_pairs_at(node, part), None)
        if pair is None:
            break
        line, node = pair[0].start_mark.line + 1, pair[1]
    return line


def _pairs_at(node: yaml.Node, part: int | str) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """The name and the value of that field, or the item of that number, twice."""
    match node:
        case yaml.MappingNode():
            yield from ((name, value) for name, value in node.value if name.value == str(part))
        case yaml.SequenceNode() if isinstance(part, int) and part < len(node.value):
            yield node.value[part], node.value[part]


def _place(mark: yaml.Mark | None) -> str:
    """Line 3, column 5: ."""
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
