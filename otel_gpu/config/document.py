"""YAML as plain values that remember their lines; every fault of the text itself."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from otel_gpu.config.faults import Fault, KeyPath, dotted
from otel_gpu.config.references import expand

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,18}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_TAG = "a tag (!name) is not supported; text that begins with ! stands in quotes"
_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}


@dataclass(slots=True)
class Document:
    """What a text says: plain values, the line of each, and what is wrong.

    `values` is None when there are none, because the text is empty or is not YAML at all.
    """

    name: str
    values: object = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)


def read(path: Path, environ: Mapping[str, str]) -> Document:
    """Read a file; one that cannot be read is a fault too."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        remedy = "give another --config, or none for the defaults"
        return _unusable(str(path), f"there is no such file; {remedy}")
    except UnicodeDecodeError as error:
        return _unusable(str(path), f"is not UTF-8 text (byte {error.start})")
    except (OSError, ValueError) as error:
        return _unusable(str(path), f"cannot be read: {getattr(error, 'strerror', None) or error}")
    return parse(text, str(path), environ)


def parse(text: str, name: str, environ: Mapping[str, str] | None = None) -> Document:
    """Read YAML; references are expanded when an environment is given.

    Plain words mean what they mean in YAML 1.2: `on` and `0000:01:00.0` are text, where YAML 1.1
    makes them a bool and the number 60.0. Aliases and tags are refused, as they hide where a
    value comes from.
    """
    document = Document(name)
    try:
        node = yaml.compose(text, Loader=_Composer)
        if node is not None:
            document.values = _Walk(document, environ).value(node, ())
    except yaml.MarkedYAMLError as error:
        return _unusable(*_syntax_error(text, name, error))
    except yaml.YAMLError as error:
        return _unusable(name, f"is not YAML: {' '.join(str(error).split())}")
    except RecursionError:
        return _unusable(name, "is nested too deeply")
    return document


def plain(text: str) -> object:
    """Give a word that stands without quotes its meaning: null, a bool, a number, or itself."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


def is_text(text: str) -> bool:
    """Whether it can be written as UTF-8: YAML escapes and variables can hold half characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unusable(where: str, message: str) -> Document:
    return Document(where, faults=[Fault(where, "", message)])


def _syntax_error(text: str, name: str, error: yaml.MarkedYAMLError) -> tuple[str, str]:
    mark: Any = error.problem_mark
    problem = str(error.problem)
    if problem.startswith("but "):  # the sentence begins in the context
        problem = f"{error.context} {problem}"
    if "tag handle" in problem:
        problem = _TAG
    line = text.splitlines()[mark.line : mark.line + 1]
    if line and "${" in line[0]:
        problem += '; inside { } and [ ] a reference stands in quotes: "${NAME}"'
    return f"{name}:{mark.line + 1}:{mark.column + 1}", f"is not YAML: {problem}"


class _Composer(yaml.SafeLoader):
    """PyYAML's composer, without aliases and tags."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs leave it untyped
        if problem := _hidden(event):
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        return super().compose_node(parent, index)


def _hidden(event: Any) -> str | None:
    """Say what makes a value come from elsewhere than its line, or be another than it says.

    Without its name: a password that begins with ! and has no quotes is a tag to YAML.
    """
    if isinstance(event, yaml.AliasEvent):
        return "an alias (*name) is not supported; write the value out"
    return _TAG if getattr(event, "tag", None) else None


class _Walk:
    """Turns nodes into plain values, and notes lines and faults on the way."""

    def __init__(self, document: Document, environ: Mapping[str, str] | None) -> None:
        self._document = document
        self._environ = environ

    def value(self, node: yaml.Node, path: KeyPath) -> object:
        self._document.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, (*path, at)) for at, each in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, object]:
        values: dict[str, object] = {}
        for key, content in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or not key.value or not is_text(key.value):
                self._fault(line, path, "a key must be a word")
                continue
            at = (*path, key.value)
            if key.value in values:
                self._fault(line, at, f"is set twice; first in line {self._document.lines[at]}")
                continue
            self._document.lines[at] = line
            values[key.value] = self.value(content, at)
        return values

    def _scalar(self, node: yaml.Node, path: KeyPath) -> object:
        text = str(node.value)
        problems: list[str] = []
        if self._environ is not None and "$" in text:
            text, problems = expand(text, self._environ)
        if not is_text(text):
            text, problems = "", ["is not Unicode text"]
        for problem in problems:
            self._fault(self._document.lines[path], path, problem)
        return text if getattr(node, "style", None) else plain(text)

    def _fault(self, line: int, path: KeyPath, message: str) -> None:
        where = f"{self._document.name}:{line}"
        self._document.faults.append(Fault(where, dotted(path), message))
