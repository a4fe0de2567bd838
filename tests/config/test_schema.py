"""The JSON schema tells an editor what the agent would take."""

from __future__ import annotations

import json
from typing import Any

from otel_gpu.config import keys, schema

WHOLE = schema()


def node(path: tuple[str, ...]) -> dict[str, Any]:
    """Follow a key path through the schema."""
    at = WHOLE
    for step in path:
        if at.get("type") == "array":
            at = at["items"]
        at = _followed(at)["properties"][step]
    return at


def _followed(at: dict[str, Any]) -> dict[str, Any]:
    at = at.get("items", at)
    for each in (at, *at.get("anyOf", ())):
        if "$ref" in each:
            found: dict[str, Any] = WHOLE["$defs"][each["$ref"].rpartition("/")[2]]
            return found
    return at


def test_it_is_json() -> None:
    assert json.loads(json.dumps(schema())) == schema()


def test_it_has_every_key_with_meaning_and_default() -> None:
    for key in keys():
        found = node(key.path)
        assert key.description in (
            found.get("description"),
            _followed(found).get("description"),
        ), key.name
        if key.holds != "section" and not key.required:
            assert found["default"] == key.default, key.name


def test_defaults_are_in_the_words_of_the_file() -> None:
    assert node(("sampling", "fast"))["default"] == "1s"
    assert node(("pipeline", "otlp", "queue", "max_bytes"))["default"] == "64MiB"


def test_other_keys_are_not_allowed_but_other_parts_are() -> None:
    assert WHOLE["additionalProperties"] is False
    assert WHOLE["$defs"]["Otlp"]["additionalProperties"] is False
    part = WHOLE["$defs"]["Part"]
    assert part["additionalProperties"]["type"] == "object"
    assert (part["minProperties"], part["maxProperties"]) == (1, 1)


def test_a_file_must_say_its_version() -> None:
    assert schema()["required"] == ["version"]


def test_choices_are_listed() -> None:
    assert node(("metrics", "profile"))["enum"] == ["none", "core", "standard", "full"]
    assert node(("attribution", "slurm"))["enum"] == ["auto", "on", "off", True, False]
