"""Series and their values, however they come: from a page, a Prometheus, or an OTLP batch.

What a server adds to say where a series is from is left out, so that ways can be compared.
"""

from collections.abc import Iterable, Mapping

from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families as text_families

from .servers import JSON, Prometheus

FROM_TARGET = ("job", "instance", "exported_job", "exported_instance", "__name__")
GPU_METRICS = ("hw_", "nvidia_")

Labels = frozenset[tuple[str, str]]
Values = dict[tuple[str, Labels], float]


def labels(every: Mapping[str, str]) -> Labels:
    """Give the labels that tell series of one target apart; an empty one is none.

    A bucket's bound is a number: Prometheus writes 1.0 when it scrapes, and 1 when it is pushed to.
    """
    return frozenset(
        (key, repr(float(text)) if key == "le" else text)
        for key, text in every.items()
        if text and key not in FROM_TARGET
    )


def page_values(page: str) -> Values:
    """Read a page in either notation."""
    read = openmetrics_families if page.endswith("# EOF\n") else text_families
    return {
        (sample.name, labels(sample.labels)): sample.value
        for family in read(page)
        for sample in family.samples
    }


def stored_values(prometheus: Prometheus, job: str) -> Values:
    """Ask a Prometheus for all that it has of one job now."""
    return {
        (one["metric"]["__name__"], labels(one["metric"])): float(one["value"][1])
        for one in prometheus.query(f'{{job="{job}"}}')
    }


def of_gpus(values: Values) -> Values:
    """Leave out what is about the agent itself, which changes from one collection to the next."""
    return named(values, GPU_METRICS)


def named(values: Values, prefixes: tuple[str, ...]) -> Values:
    """Give the series whose names begin with one of these."""
    return {key: value for key, value in values.items() if key[0].startswith(prefixes)}


def metrics_of(batch: JSON) -> Iterable[JSON]:
    """Give the metrics of an OTLP/JSON request; logs have none."""
    for resource in batch.get("resourceMetrics", []):
        for scope in resource["scopeMetrics"]:
            yield from scope["metrics"]


def points_of(metric: JSON) -> list[JSON]:
    """Give the points of a metric, whatever its kind."""
    data = metric.get("gauge") or metric.get("sum") or metric.get("histogram") or {}
    points: list[JSON] = data.get("dataPoints", [])
    return points


def batch_values(batch: JSON) -> dict[tuple[str, str, str], float]:
    """Give every point about a GPU in OTLP's own words: name, hw.id, attributes."""
    return {
        _key(metric, point): float(point["asInt"] if "asInt" in point else point["asDouble"])
        for metric in metrics_of(batch)
        if metric["name"].startswith(("hw.", "nvidia."))
        for point in points_of(metric)
    }


def _key(metric: JSON, point: JSON) -> tuple[str, str, str]:
    attributes = {
        one["key"]: str(next(iter(one["value"].values()))) for one in point.get("attributes", [])
    }
    gpu = attributes.pop("hw.id", "")
    return metric["name"], gpu, str(sorted(attributes.items()))
