"""docs/configuration.md: every key of agent.yaml, from the settings."""

from __future__ import annotations

from otel_gpu.config import Key, keys
from otel_gpu.config.flow import flow

HEAD = """# Configuration

Every key of `agent.yaml`, its default and its meaning. This page is made from the settings;
`make render` rewrites it. `otel-gpu config check FILE` says what is wrong with a file,
`otel-gpu config show FILE` what is in force and who said so.

A value comes from, in this order: a flag, the environment variable beside the key, the file, an
`OTEL_*` variable of OpenTelemetry's specification, the default. In the file `${NAME}` and
`${NAME:-default}` stand for environment variables, and `$$` for a dollar sign.

| key | default | variable | meaning |
|---|---|---|---|
"""


def markdown() -> str:
    """Write the page."""
    return HEAD + "".join(row(key) for key in keys())


def row(key: Key) -> str:
    """Write one key."""
    meaning = " ".join(key.description.split()).replace("|", "\\|")
    return f"| `{key.name}` | `{flow(key.default)}` | `{key.variable}` | {meaning} |\n"
