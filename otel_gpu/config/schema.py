"""The JSON schema of agent.yaml, for editors and for the chart."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from otel_gpu.config.settings import Settings


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles that pydantic makes of names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Say no."""
        del schema
        return False


def schema() -> dict[str, Any]:
    """Give the schema (JSON Schema 2020-12), with the meaning of every key."""
    made = Settings.model_json_schema(schema_generator=_Untitled)
    head = {"$schema": GenerateJsonSchema.schema_dialect, **made}
    return {**_on_one_line(head), "title": "otel-gpu agent.yaml", "required": ["version"]}


def _on_one_line(node: Any) -> Any:
    """Unwrap the descriptions, which are wrapped as the source is."""
    if isinstance(node, list):
        return [_on_one_line(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {key: _described(key, each) for key, each in node.items()}


def _described(key: str, value: Any) -> Any:
    if key == "description" and isinstance(value, str):
        return " ".join(value.split())
    return _on_one_line(value)
