"""YAML with the line of each key. Safe: no tags, no other document, no aliases that explode.

PyYAML follows YAML 1.1, where 010 is 8, 1:30 is 90 and 2024-01-01 is a date. Here a number is a number only when it is
written as one in decimal; all else stays the text that was written, and the schema says what it wanted instead.
"""

import re

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from common.errors import SpecError
from common.spec_tree import MAX_DEPTH, Entries, Entry, too_deep

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({"str", "timestamp", "merge", "value"})
_TRUE = frozenset({"yes", "true", "on"})
_FALSE = frozenset({"no", "false", "off"})
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})")
_MAX_VALUES = 100_000


def parse_yaml(text: str, source: str) -> object:
    """Entries for a mapping, a list, or a scalar; None for no text. Raises SpecError with line and column."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return None if node is None else _Reader(source).value(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{source}:{mark.line + 1}: column {mark.column + 1}" if mark else source
        why = ", ".join(part for part in (error.context, error.problem) if part)
        raise SpecError(f"{at}: this is not YAML", why=why, fix="correct the text there") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise SpecError(f"{source}: this is not YAML", why=" ".join(str(error).split())) from None
    except RecursionError:
        raise too_deep(source, 1) from None


class _Reader:
    """Walks the nodes and counts them: an alias costs as much as what it stands for."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.left = _MAX_VALUES

    def value(self, node: Node, above: tuple[Node, ...]) -> object:
        self.left -= 1
        if self.left < 0:
            raise SpecError(f"{self.source}: aliases make more than {_MAX_VALUES:,} values of this file")
        if len(above) > MAX_DEPTH or any(node is other for other in above):
            raise too_deep(self.source, _line(node))
        if isinstance(node, MappingNode) and node.tag == f"{_TAG}map":
            return Entries(tuple(self.entries(node, (*above, node))))
        if isinstance(node, SequenceNode) and node.tag == f"{_TAG}seq":
            return [self.value(item, (*above, node)) for item in node.value]
        if isinstance(node, ScalarNode):
            return self.scalar(node)
        raise self.tagged(node)

    def entries(self, node: MappingNode, above: tuple[Node, ...]) -> list[Entry]:
        own: list[Entry] = []
        merged: list[Entry] = []
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                merged += self.merged(value, above)
            elif not isinstance(key, ScalarNode) or not isinstance(name := self.scalar(key), str):
                raise self.odd_key(key)
            else:
                own.append(Entry(name, _line(key), self.value(value, above)))
        # A merge (<<) fills in only what is not written out; of two merged mappings the first counts.
        for entry in merged:
            if all(entry.key != other.key for other in own):
                own.append(entry)
        return own

    def merged(self, node: Node, above: tuple[Node, ...]) -> list[Entry]:
        value = self.value(node, above)
        found = value if isinstance(value, list) else [value]
        if not all(isinstance(one, Entries) for one in found):
            raise SpecError(f"{self.source}:{_line(node)}: << takes a mapping, or a list of mappings")
        return [entry for one in found if isinstance(one, Entries) for entry in one.entries]

    def scalar(self, node: ScalarNode) -> object:
        text: str = node.value
        match node.tag.removeprefix(_TAG):
            case "null":
                return None
            case "bool" if text.lower() in _TRUE | _FALSE:
                return text.lower() in _TRUE
            case "int":
                return int(text) if _WHOLE.fullmatch(text) else text
            case "float":
                return _float(text)
            case "bool":
                return text
            case tag if tag in _TEXT_TAGS:
                return text
        raise self.tagged(node)

    def tagged(self, node: Node) -> SpecError:
        return SpecError(
            f"{self.source}:{_line(node)}: the tag {node.tag.replace(_TAG, '!!')} is not allowed",
            why="a job spec holds mappings, lists, text, numbers, true, false and null",
            fix="remove the tag",
        )

    def odd_key(self, node: Node) -> SpecError:
        written = node.value if isinstance(node, ScalarNode) else "a list or mapping"
        return SpecError(
            f"{self.source}:{_line(node)}: the key {written or 'null'} is not text", fix="put it in quotes"
        )


def _float(text: str) -> object:
    """.nan and .inf become floats, which no key allows; 1:30.5 stays text."""
    try:
        return float(text.replace(".inf", "inf").replace(".nan", "nan").replace(".Inf", "inf").replace(".NaN", "nan"))
    except ValueError:
        return text


def _line(node: Node) -> int:
    line: int = node.start_mark.line
    return line + 1
