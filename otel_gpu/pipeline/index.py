"""The page for people: where to go from here, and the GPUs at this moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from opentelemetry.sdk.metrics.export import MetricsData

from otel_gpu.model import Device, Snapshot
from otel_gpu.pipeline.glance import COLUMNS, Glance, glances

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { padding: .3rem 1rem .3rem 0; text-align: left; }
th { border-bottom: 1px solid; } td { font-variant-numeric: tabular-nums; }
""".strip()


def index(snapshot: Snapshot, data: MetricsData | None, version: str, paths: Sequence[str]) -> str:
    """Write the page: links, and each known GPU with the readings that are published of it now."""
    links = "".join(f'<li><a href="{escape(path)}">{escape(path)}</a>' for path in paths)
    trouble = f"<p>{escape(snapshot.trouble)}" if snapshot.trouble else ""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>otel-gpu</title>"
        f"<style>{STYLE}</style><h1>otel-gpu {escape(version)}</h1>"
        f"<ul>{links}</ul>{trouble}{_table(snapshot, glances(data))}\n"
    )


def _table(snapshot: Snapshot, found: dict[str, Glance]) -> str:
    if not snapshot.devices:
        return "<p>No GPU has been seen."
    titles = ("GPU", "model", "UUID", *(column.title for column in COLUMNS))
    rows = "".join(_row(device, found.get(uuid)) for uuid, device in snapshot.devices.items())
    return f"<table><tr>{_cells('th', titles)}{rows}</table>"


def _row(device: Device, glance: Glance | None) -> str:
    name = glance.name if glance else f"{device.name} (no readings)"
    readings = glance.readings if glance else {}
    texts = (readings.get(column.title, "") for column in COLUMNS)
    return f"<tr>{_cells('td', (name, device.model, device.uuid, *texts))}"


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}" for text in texts)
