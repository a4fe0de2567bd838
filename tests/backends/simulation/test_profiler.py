from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel_gpu.backends.simulation.boxes import BOXES
from otel_gpu.backends.simulation.profiler import SIGNALS
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog import profiling as gpm
from otel_gpu.catalog.profiling import CALL
from otel_gpu.model import Answer, Code, Kind, Metric, Query
from tests.backends.box import RATES, FakeClock, gpu_uuid, one, opened, simulated, sweep, value

ASKED = sorted(
    {query.args[0] for metric in CATALOG for query in metric.read.queries if query.call == CALL}
)
PROFILED = ("h200x8", "b200x8")


def metric(number: int) -> Query:
    return Query(CALL, (number,))


def means(spec: str, seconds: float, spans: int) -> Iterator[dict[int, float]]:
    """Every metric that is asked for, of one span after the other."""
    clock = FakeClock()
    backend = opened(spec, clock)
    queries = [metric(number) for number in ASKED]
    backend.ask(gpu_uuid(backend, 0), queries)
    for _ in range(spans):
        clock.now += seconds
        answers = backend.ask(gpu_uuid(backend, 0), queries)
        yield {number: one.value[0] for number, one in zip(ASKED, answers, strict=True)}


def test_the_first_read_has_no_data_and_the_next_one_tells_its_span() -> None:
    clock = FakeClock(1000)
    backend = opened("h200x8", clock)
    assert one(backend, metric(gpm.SM)) == Answer(Code.NO_DATA)
    clock.now += 0.05
    assert one(backend, metric(gpm.SM)) == Answer(Code.NO_DATA)
    clock.now += 0.95
    _, begin, end = value(backend, metric(gpm.SM))
    assert (begin, end) == (1000, 1001)


def test_a_new_enumeration_begins_anew() -> None:
    clock = FakeClock(1000)
    backend = opened("h200x8", clock)
    one(backend, metric(gpm.SM))
    backend.open()
    clock.now += 1
    assert one(backend, metric(gpm.SM)) == Answer(Code.NO_DATA)


@pytest.mark.parametrize("box", sorted(BOXES.keys() - set(PROFILED)))
def test_boards_before_hopper_and_small_ones_have_no_such_counters(box: str) -> None:
    backend = simulated(box)
    for device in backend.open().devices:
        assert backend.ask(device.uuid, [metric(gpm.SM)]) == [Answer(Code.NOT_SUPPORTED)]


def test_only_hopper_and_blackwell_are_profiled() -> None:
    found = {box.board.architecture for box in BOXES.values() if box.board.profiled}
    assert found == {"Hopper", "Blackwell"}


@pytest.mark.parametrize("box", PROFILED)
def test_a_training_job_keeps_the_tensor_cores_near_nine_tenths(box: str) -> None:
    several = list(means(f"{box},gpus=2,load=1", 5, 400))
    middle = sorted(one[gpm.TENSOR] for one in several)[len(several) // 2]
    assert 80 < middle < 93
    for one_read in several:
        assert 0 <= one_read[gpm.TENSOR] <= one_read[gpm.SM] <= one_read[gpm.GRAPHICS] <= 99
        assert one_read[gpm.TENSOR_HMMA] == one_read[gpm.TENSOR]
        assert 0 < one_read[gpm.DRAM] < one_read[gpm.SM]
        assert 0 < one_read[gpm.SM_OCCUPANCY] < 30
        assert 0 < one_read[gpm.FP32] < 8
        assert one_read[gpm.FP64] == one_read[gpm.NVDEC] == one_read[gpm.NVENC] == 0
        assert one_read[gpm.PCIE_TRANSMIT] != one_read[gpm.PCIE_RECEIVE]


def test_an_idle_gpu_does_nothing_but_answer_over_pcie() -> None:
    [idle] = means("h200x8,gpus=2,load=0", 1, 1)
    moving = {gpm.PCIE_TRANSMIT, gpm.PCIE_RECEIVE}
    assert {mean for number, mean in idle.items() if number not in moving} == {0.0}
    assert all(0 < idle[number] < 1 for number in moving)


def test_loading_and_checkpoints_leave_the_tensor_cores_and_the_links_alone() -> None:
    spans = list(means("h200x8,gpus=2,load=1", 1, 1500))
    paused = [one for one in spans if one[gpm.TENSOR] == 0]
    assert len(paused) > 50
    assert all(0 < one[gpm.GRAPHICS] < 21 for one in paused)
    assert all(one[gpm.NVLINK_TRANSMIT] == 0 < one[gpm.PCIE_RECEIVE] for one in paused)


@settings(max_examples=15)
@given(st.lists(st.floats(0.2, 300), min_size=1, max_size=12), st.sampled_from(sorted(SIGNALS)))
def test_spans_add_up_to_the_same_however_they_are_cut(pauses: list[float], number: int) -> None:
    clock = FakeClock()
    often, once = (opened("h200x8,gpus=2", clock) for _ in range(2))
    begun = one(often, metric(number)), one(once, metric(number))
    assert begun == (Answer(Code.NO_DATA),) * 2
    area = 0.0
    for pause in pauses:
        clock.now += pause
        mean, begin, end = value(often, metric(number))
        area += mean * (end - begin)
    mean, begin, end = value(once, metric(number))
    assert area == pytest.approx(mean * (end - begin), rel=1e-6, abs=1e-4)


def test_pcie_rates_are_those_that_the_driver_measures() -> None:
    clock = FakeClock(1360)
    backend = opened("h200x8,load=1", clock)
    while value(backend, RATES)["gpu"] < 85:  # it is at a checkpoint
        clock.now += 5
    for way, number in ((0, gpm.PCIE_TRANSMIT), (1, gpm.PCIE_RECEIVE)):
        one(backend, metric(number))
        clock.now += 0.5
        mean, *_ = value(backend, metric(number))
        kilobytes = value(backend, Query("nvmlDeviceGetPcieThroughput", (way,)))
        assert mean * gpm.MEBI == pytest.approx(kilobytes * 1000, rel=0.1)


def test_a_metric_that_no_signal_is_for_is_answered_from_its_record() -> None:
    hits = Metric(
        name="nvidia.gpu.cache.hits",
        kind=Kind.GAUGE,
        unit="1",
        brief="Reads that the cache answered.",
        read=gpm.gpm(160, scale=0.01),
        typical=(0.3, 0.7),
    )
    clock = FakeClock()
    backend = simulated("h200x8", clock, catalog=[hits])
    [device, *_] = backend.open().devices
    sweep(backend, device, [hits])
    clock.now += 1
    [(_, [point], gaps)] = sweep(backend, device, [hits])
    assert not gaps
    assert 0.3 <= point.value <= 0.7


def test_an_id_that_nobody_knows_is_not_valid() -> None:
    clock = FakeClock()
    backend = opened("h200x8", clock)
    one(backend, metric(9999))
    clock.now += 1
    assert one(backend, metric(9999)) == Answer(Code.INVALID_ARGUMENT)


def test_metrics_travel_in_one_call_that_can_be_slow_and_refused() -> None:
    clock = FakeClock(1000)
    backend = opened(f"gpus=2,fault=slow:{CALL}:50ms,fault=refuse:15:{CALL}@5s", clock)
    told: list[str] = []
    backend.on_call = lambda _uuid, function: told.append(function)
    backend.ask(gpu_uuid(backend, 0), [metric(number) for number in ASKED])
    assert told == [CALL]
    assert clock.now == pytest.approx(1000.05)
    clock.now += 5
    answers = backend.ask(gpu_uuid(backend, 0), [metric(gpm.SM), metric(gpm.DRAM)])
    assert answers == [Answer(Code.GPU_IS_LOST)] * 2


def test_every_metric_that_the_catalog_asks_has_a_signal() -> None:
    assert set(ASKED) <= SIGNALS.keys()
