"""Every metric of the catalog at once, which no single box serves, and instruments of others.

A GPU and one of its MIG instances have a point of each metric with every attribute that the record
names, so that each label name is there as well.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.sdk.metrics.export import MetricReader

from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.forms import Supplied
from otel_gpu.instruments import Instruments, Shape, Supply
from otel_gpu.model import (
    AttributeValue,
    Device,
    Kind,
    Metric,
    Owner,
    Point,
    Reading,
    Snapshot,
)
from otel_gpu.provider import MeterProvider
from otel_gpu.resources import Resources

Callback = Callable[[CallbackOptions], Iterable[Observation]]

START_NS = 1_700_000_000_000_000_000

GPU = Device(
    uuid="GPU-0",
    index=0,
    minor=0,
    model="NVIDIA H200",
    serial="1650",
    pci_address="0000:1b:00.0",
    driver_version="580.1",
)
INSTANCE = Device(
    uuid="MIG-0",
    index=0,
    minor=0,
    model="NVIDIA H200",
    serial="1650",
    pci_address="0000:1b:00.0",
    driver_version="580.1",
    parent=GPU.uuid,
    mig_profile="1g.18gb",
    gpu_instance=7,
    compute_instance=0,
)
POD = Owner(
    (
        ("k8s.namespace.name", "ml"),
        ("k8s.pod.name", 'a "pod" with a \\ and\na new line'),
        ("k8s.pod.label.app.kubernetes.io/name", "größe"),
    ),
    (("k8s.pod.uid", "0-0"),),
)

# fmt: off
FOREIGN_UNITS = (
    "1", "%", "s", "ms", "us", "ns", "min", "h", "d", "By", "KiBy", "MiBy", "GiBy", "KBy", "kBy",
    "m", "g", "V", "A", "J", "W", "Hz", "Cel", "rpm", "bit", "furlong", "By/s", "m/s", "1/s",
    "{frame}/s", "{packet}/min", "Cel/h", "{thing}", "{a}{b}", "W.h", "10", "m/m",
    "J/{token}", "s{x}", "{a}/{b}", "By/{x}/s",
)
# fmt: on
FOREIGN_NAMES = (
    "app.bytes.rate",
    "app.seconds.total",
    "app.ratio.hits",
    "app.per_second",
    "app-name/with.odd-chars",
    "App.Upper",
    "app..twice__over",
    "app.percent",
    "app.total",
    "app.hertz.ratio",
)
FOREIGN_ATTRIBUTES: Mapping[str, AttributeValue] = {
    "with-dash/slash": "x",
    "9lives": "y",
    "_private": "p",
    "a.bool": True,
    "an.int": -7,
    "a.float": 0.25,
    "le.gume": "z",
    "empty": "",
}


@dataclass(frozen=True)
class Foreign:
    """An instrument that somebody else registers on the same provider."""

    name: str
    unit: str
    kind: Kind


FOREIGN = [
    # The number makes each a metric of its own: one name has one unit and one kind.
    Foreign(f"f{number}.{kind[0]}.{FOREIGN_NAMES[number % len(FOREIGN_NAMES)]}", unit, kind)
    for kind in (Kind.GAUGE, Kind.COUNTER, Kind.UPDOWNCOUNTER)
    for number, unit in enumerate(FOREIGN_UNITS)
]
FOREIGN += [
    Foreign(f"n{number}.{name}", unit, Kind.GAUGE)
    for number, unit in enumerate(("1", "By/s", "s", "%", ""))
    for name in FOREIGN_NAMES
]


def everything(readers: Sequence[MetricReader]) -> MeterProvider:
    """Make a provider that observes all of it, always the same."""
    snapshot = _snapshot()
    provider = MeterProvider(
        readers,
        Resources({"service.name": "otel-gpu", "host.name": "box"}, lambda: snapshot),
        shutdown_on_exit=False,
    )
    instruments = Instruments(
        CATALOG,
        lambda: snapshot,
        every={},
        supplies=_supplies(),
        shape=Shape(identity="full"),
        clock=lambda: 0.0,
    )
    histograms = instruments.register(provider.get_meter("otel-gpu", "1.2.3"))
    for metric in CATALOG:
        if metric.kind is Kind.HISTOGRAM:
            for seconds in (1 / 256, 1 / 16, 4.0):  # whose sum is exact
                histograms[metric.name].record(seconds, _attributes(metric))
    _register_foreign(provider.get_meter("somebody.else"))
    return provider


def _snapshot() -> Snapshot:
    return Snapshot(
        devices={device.uuid: device for device in (GPU, INSTANCE)},
        up={GPU.uuid: True, INSTANCE.uuid: True},
        owners={INSTANCE.uuid: (POD,)},
        readings=tuple(
            Reading(metric, device.uuid, (_point(metric, number),), 0, 0.0)
            for number, metric in enumerate(CATALOG)
            if not isinstance(metric.read, Supplied)
            for device in (GPU, INSTANCE)
        ),
    )


def _supplies() -> dict[str, Supply]:
    return {
        metric.name: _supply(metric, number)
        for number, metric in enumerate(CATALOG)
        if isinstance(metric.read, Supplied)
    }


def _supply(metric: Metric, number: int) -> Supply:
    point = _point(metric, number)
    return lambda _snapshot: [(GPU.uuid, point), ("", point)]


def _point(metric: Metric, number: int) -> Point:
    """Give a value that tells the metric from others, with a start where it counts."""
    value = number + 2**40 if metric.integer else (number + 1) / 7
    start_ns = START_NS if metric.kind is Kind.COUNTER else None
    return Point(value, tuple(_attributes(metric).items()), start_ns)


def _attributes(metric: Metric) -> dict[str, AttributeValue]:
    named: dict[str, AttributeValue] = {
        key: f"a {key}" for key in metric.attributes if key != "hw.id"
    }
    return named | ({"process.pid": 4711} if "process.pid" in named else {})


def _register_foreign(meter: Meter) -> None:
    create = {
        Kind.GAUGE: meter.create_observable_gauge,
        Kind.COUNTER: meter.create_observable_counter,
        Kind.UPDOWNCOUNTER: meter.create_observable_up_down_counter,
    }
    for number, each in enumerate(FOREIGN):
        observation = Observation(number / 8, FOREIGN_ATTRIBUTES)
        create[each.kind](each.name, [_observing(observation)], unit=each.unit)


def _observing(observation: Observation) -> Callback:
    return lambda _options: [observation]
