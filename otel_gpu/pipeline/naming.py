"""OpenTelemetry's names as Prometheus writes them: the same for pull as for OTLP that it is sent.

The unit and character mapping is the official exporter's. What that leaves out of the OTLP to
Prometheus translation (specification: "Prometheus and OpenMetrics Compatibility"), and every other
translator does, is added here: `_ratio` on gauges of unit 1, and a unit that a name contains
already is not repeated.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from opentelemetry.exporter.prometheus._mapping import (
    map_unit,
    sanitize_attribute,
    sanitize_full_name,
)

from otel_gpu.model import Kind


class Family(NamedTuple):
    """A metric family: how its samples are called, and how its metadata lines are.

    `name` is that of the samples (a histogram's without `_bucket`, `_sum` and `_count`), `base`
    the same without `_total`. `unit` is "" unless `base` ends in it, as OpenMetrics demands.
    """

    name: str
    base: str
    type: str
    unit: str


TYPES = {
    Kind.COUNTER: "counter",
    Kind.GAUGE: "gauge",
    Kind.UPDOWNCOUNTER: "gauge",
    Kind.HISTOGRAM: "histogram",
}


@lru_cache(maxsize=4096)  # bounded: names come from instruments, but anybody may make some
def family(name: str, unit: str, kind: Kind) -> Family:
    """Give the family of an instrument, named by OTel name, UCUM unit and kind."""
    words = [word for word in sanitize_full_name(name).split("_") if word]
    suffixes = _unit_suffixes(unit)
    words += [suffix for suffix in suffixes if suffix not in words]
    if kind is Kind.COUNTER:
        words = [word for word in words if word != "total"]
    if kind is Kind.GAUGE and unit == "1":
        suffixes = ["ratio"]
        words = [*(word for word in words if word != "ratio"), "ratio"]
    base = "_".join(words)
    full_unit = "_".join(suffixes)
    stated = full_unit if full_unit and base.endswith(f"_{full_unit}") else ""
    return Family(f"{base}_total" if kind is Kind.COUNTER else base, base, TYPES[kind], stated)


@lru_cache(maxsize=4096)
def label_name(key: str) -> str:
    """Give the label of an attribute; a leading digit gets `key_` in front, as Prometheus does."""
    name = sanitize_attribute(key if not key[:1].isdigit() else f"key_{key}")
    return f"key{name}" if name.startswith("_") else name


def _unit_suffixes(unit: str) -> list[str]:
    """Give the words for a unit and for what it is per: `By/s` -> bytes, per_second."""
    main, _, divisor = (part if "{" not in part else "" for part in unit.partition("/"))
    per = map_unit(f"1/{divisor}").rpartition("per_")[2] if divisor else ""
    return [word for word in (map_unit(main), f"per_{per}" if per else "") if word]
