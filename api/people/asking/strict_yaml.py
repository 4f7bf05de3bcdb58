"""YAML as an applied file is read: what YAML would silently drop is a fault, and faults say where they are."""

from collections.abc import Hashable, Iterator
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError
from yaml.reader import ReaderError

from domain.words.text import DEEPEST

_NO_SUCH_VALUE = (ValueError, KeyError, AttributeError, TypeError, OverflowError)
"""What PyYAML lets through when a text is not what its tag says: a date in month 13, a number of 5,000 digits."""


class StrictLoader(yaml.SafeLoader):
    """Refuses a field that stands twice, of which YAML would silently keep the last, and what is nested without end."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Raises ComposerError at the first list or field that is too deep."""
        if self._depth > DEEPEST:
            problem = f"is nested more than {DEEPEST} levels deep; make it flatter"
            begins = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # its stub has no types
            raise ComposerError(None, None, problem, begins)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002  (PyYAML's own)
        """Raises ConstructorError for a value that is not what it looks like, or is said to be; it may be a secret."""
        try:
            return super().construct_object(node, deep)
        except _NO_SUCH_VALUE:
            problem = f"this is no valid {node.tag.rpartition(':')[2]}; quote it if it is meant as text"
            raise ConstructorError(None, None, problem, node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002  (as above)
        """Raises ConstructorError naming the field."""
        seen: set[object] = set()
        for key in self._keys(node):
            if key in seen:
                raise ConstructorError(None, None, f"{key} stands twice", node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    @staticmethod
    def _keys(node: yaml.Node) -> Iterator[str]:
        """None of what is no mapping, though its tag says so."""
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        return (key.value for key, _ in pairs if isinstance(key, yaml.ScalarNode) and key.value != "<<")


def documents_of(text: str) -> list[object]:
    """Return what the YAML documents hold. Raises ValueError saying in which line is what, and what would be right."""
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


def _place(mark: yaml.Mark | None) -> str:
    """Line 3, column 5: ."""
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
