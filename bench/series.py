"""How many series the standard profile has: by family for a GPU, and for whole machines.

    python -m bench.series

Prints a table. The sizes that must hold are in `tests/catalog/test_size.py`.
"""

from __future__ import annotations

from collections import Counter

from opentelemetry.sdk.metrics.export import MetricsData

from otel_gpu import single
from otel_gpu.catalog import FAMILIES
from otel_gpu.config import load

BOXES = ("h200x8", "a100-mig", "l4", "rtx4090", "t4", "gb10", "b200x8")
HOME = {metric.name: family for family, metrics in FAMILIES.items() for metric in metrics}


def counted(data: MetricsData) -> Counter[str]:
    """Count the points of a collection by the family of their metric."""
    counts: Counter[str] = Counter()
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                counts[HOME[metric.name]] += len(metric.data.data_points)
    return counts


def measure(box: str) -> tuple[int, Counter[str]]:
    """Give the GPUs and instances of a simulated box, and its series by family."""
    settings = load(None, {}, {"backend": f"simulated:{box}"}).settings
    snapshot = single.sweep(settings)
    data, _ = single.collected(settings, snapshot, {})
    return len(snapshot.devices), counted(data)


def main() -> None:
    print(f"{'box':10} {'GPUs':>5} {'series':>7}  by family")
    for box in BOXES:
        gpus, counts = measure(box)
        families = ", ".join(f"{name} {counts[name]}" for name in FAMILIES if counts[name])
        print(f"{box:10} {gpus:5} {counts.total():7}  {families}")


if __name__ == "__main__":
    main()
