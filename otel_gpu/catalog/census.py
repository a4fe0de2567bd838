"""What is wrong with a catalog, all at once; and which of its metrics a configuration selects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from otel_gpu.model import Kind, Metric, Profile

NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
UNIT = re.compile(r"1|By|By/s|Cel|Hz|J|W|rpm|s|\{[a-z_]+\}|\{[a-z_]+\}/s")
SENTENCE = re.compile(r"(?:[^.]|\.(?=\S))+\.")  # a dot inside a word, as in `hw.id`, ends nothing
NAMESPACES = ("hw.", "nvidia.gpu.", "otel_gpu.", "otel.sdk.", "process.")


def faults(catalog: Sequence[Metric]) -> list[str]:
    """List what is wrong, one line each; empty when the catalog is sound."""
    names = Counter(metric.name for metric in catalog)
    found = [f"{name}: is there {count} times" for name, count in names.items() if count > 1]
    return found + [fault for metric in catalog for fault in metric_faults(metric)]


def metric_faults(metric: Metric) -> list[str]:
    """List what is wrong with one record."""
    low, high = metric.typical
    attributes = metric.attributes + tuple(key for key, _ in metric.constant)
    checks = {
        f"the name is not lower case words with dots: {metric.name!r}": NAME.fullmatch(metric.name),
        f"the name is in none of {', '.join(NAMESPACES)}": metric.name.startswith(NAMESPACES),
        f"the unit is not one of ours: {metric.unit!r}": UNIT.fullmatch(metric.unit),
        "the brief is not one sentence with a full stop": SENTENCE.fullmatch(metric.brief),
        f"the typical range is upside down: {metric.typical}": low <= high,
        "a counter cannot have negative typical growth": metric.kind is not Kind.COUNTER
        or low >= 0,
        "an attribute is declared twice": len(set(attributes)) == len(attributes),
    }
    return [f"{metric.name}: {text}" for text, sound in checks.items() if not sound]


def select(
    catalog: Iterable[Metric],
    profile: Profile,
    enable: Sequence[str] = (),
    disable: Sequence[str] = (),
) -> tuple[Metric, ...]:
    """Give the metrics of a profile, plus those enabled, minus those disabled, by name or glob.

    A metric is narrowed to the parts that the profile includes; enabled by name, it is whole.
    """
    chosen = (chosen_part(metric, profile, enable) for metric in catalog)
    return tuple(
        metric for metric in chosen if metric is not None and not matches(metric.name, disable)
    )


def chosen_part(metric: Metric, profile: Profile, enable: Sequence[str]) -> Metric | None:
    """Give the part of one metric that is selected, or None."""
    if matches(metric.name, enable):
        return metric
    if metric.profile > profile:
        return None
    read = metric.read.at(profile)
    return None if read is None else replace(metric, read=read)


def matches(name: str, globs: Sequence[str]) -> bool:
    """Whether any of the globs names this metric."""
    return any(fnmatchcase(name, glob) for glob in globs)
