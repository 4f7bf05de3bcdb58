"""YAML as `rollway apply` reads it: what YAML would silently drop is a fault, and faults say where they are."""

from collections.abc import Hashable, Iterator
from typing import Any

import yaml
from yaml.constructor import ConstructorError


class StrictLoader(yaml.SafeLoader):
    """Refuses a field that stands twice, of which YAML would silently keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Raises ConstructorError naming the field."""
        seen: set[object] = set()
        for key in self._keys(node):
            if key in seen:
                raise ConstructorError(None, None, f"{key} stands twice", node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    @staticmethod
    def _keys(node: yaml.MappingNode) -> Iterator[str]:
        return (key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<")


def fault_of(error: yaml.MarkedYAMLError) -> str:
    """Line 3, column 5: what is wrong there."""
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{place}{error.problem or 'is no YAML'}"
