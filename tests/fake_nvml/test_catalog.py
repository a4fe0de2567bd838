"""Every metric of the catalog shows what was planted, through the C library and the whole agent.

Made from the catalog and from `facts.py`: a metric of tomorrow is tested tomorrow, or fails here
with a word about what is to be added.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_gpu.backends.nvml import nvml
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.census import select
from otel_gpu.catalog.reading import call, either, field, split
from otel_gpu.model import Kind, Metric, Profile
from tests.fake_nvml.facts import BLACKWELL, HOPPER, SLICE
from tests.fake_nvml.judging import asking, complaints, spans, untold
from tests.fake_nvml.library import Build
from tests.fake_nvml.machine import FakeNvml
from tests.fake_nvml.rounds import FULL_ROUNDS, Rig, Round

METRICS = asking(select(CATALOG, Profile.FULL, ["*"]))


def observed(build: Build, folder: Path, metrics: tuple[Metric, ...], full: int) -> list[Round]:
    fake = FakeNvml(folder / "machine", build(()))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in fake.environ.items():
            patch.setenv(name, value)
        return Rig(fake, metrics).rounds(full)


@pytest.fixture(scope="module")
def rounds(build: Build, tmp_path_factory: pytest.TempPathFactory) -> list[Round]:
    """Sweep the whole catalog over the planted machine, once for all tests."""
    return observed(build, tmp_path_factory.mktemp("catalog"), METRICS, FULL_ROUNDS)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_shows_what_nvml_h_says_that_it_is(metric: Metric, rounds: list[Round]) -> None:
    assert complaints(metric, rounds) == []


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_each_question_of_a_metric_is_seen_in_a_point(metric: Metric, rounds: list[Round]) -> None:
    assert untold(metric, rounds) == []


def record(name: str, unit: str, read: object) -> Metric:
    return Metric(name=name, kind=Kind.GAUGE, unit=unit, brief="A number.", read=read)  # type: ignore[arg-type] # any form


WATTS, PERCENT = 1e-3, 1e-2
LIES = {
    "milliwatts are shown as watts": (
        record("hw.power", "W", field(186)),
        "cannot be true",
    ),
    "its neighbour is asked": (record("hw.power", "W", field(185, scale=WATTS)), "NVML said"),
    "two branches are swapped": (
        record(
            "nvidia.gpu.pcie.throughput",
            "By/s",
            split(
                "network.io.direction",
                {
                    "transmit": call("nvmlDeviceGetPcieThroughput", 1, scale=1000),
                    "receive": call("nvmlDeviceGetPcieThroughput", 0, scale=1000),
                },
            ),
        ),
        "NVML said",
    ),
    "another member is read": (
        record(
            "nvidia.gpu.bar1.usage", "By", call("nvmlDeviceGetBAR1MemoryInfo", path=("bar1Free",))
        ),
        "NVML said",
    ),
    "the unit is another quantity's": (
        record("hw.power", "J", field(186, scale=WATTS)),
        "is in J; nvmlDeviceGetFieldValues(186, 0), which it is named after, is in mW",
    ),
    "it has a name that nobody knows": (
        record("nvidia.gpu.warp.factor", "1", call("nvmlDeviceGetPowerUsage", scale=WATTS)),
        "say in tests/fake_nvml/facts.py",
    ),
    "it asks what the fake does not answer": (
        record("nvidia.gpu.bus.type", "{type}", call("nvmlDeviceGetBusType")),
        "say in tests/fake_nvml/facts.py",
    ),
}


@pytest.mark.parametrize(("metric", "words"), LIES.values(), ids=LIES)
def test_a_record_that_lies_is_found_out(
    build: Build, tmp_path: Path, metric: Metric, words: str
) -> None:
    found = complaints(metric, observed(build, tmp_path, (metric,), full=1))
    assert found
    assert words in found[0]


def test_a_path_that_is_never_walked_is_found_out(build: Build, tmp_path: Path) -> None:
    read = either(field(186, scale=WATTS), field(999, scale=WATTS))
    metric = record("hw.power", "W", read)
    assert "asks nvmlDeviceGetFieldValues(999, 0)" in str(
        untold(metric, observed(build, tmp_path, (metric,), full=1))
    )


@pytest.mark.parametrize("board", [HOPPER, BLACKWELL, SLICE])
def test_integrals_of_one_gpu_grow_over_the_same_span(board: str, rounds: list[Round]) -> None:
    """A wrong source, or a wrong unit, would have had to grow for longer or shorter than others."""
    grown = [seconds for seconds in spans(board, rounds) if seconds]
    assert len(grown) == FULL_ROUNDS
    for seconds in grown:
        span = seconds["engine time | graphics"]
        assert span >= 0.1
        assert seconds == pytest.approx(dict.fromkeys(seconds, span), rel=1e-6)


@pytest.mark.skipif(
    not hasattr(nvml, "nvmlDeviceGetRepairStatus"), reason="this pynvml cannot ask for most of it"
)
def test_every_state_of_health_was_seen(rounds: list[Round]) -> None:
    held = {
        value
        for one in rounds
        for reading in one.snapshot.readings
        if reading.metric.name == "hw.status"
        for point in reading.points
        for _, value in point.attributes
        if point.value
    }
    assert held == {"ok", "degraded", "predicted_failure", "failed"}
