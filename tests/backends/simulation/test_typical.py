from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from otel_gpu.backends.simulation.boxes import BOXES, SEVEN, instance
from otel_gpu.backends.simulation.chance import Chance
from otel_gpu.backends.simulation.typical import Elapsed, answer, index, put
from otel_gpu.catalog.forms import Ask
from otel_gpu.catalog.reading import asking, call, each, either, field, only, split
from otel_gpu.model import Answer, Device, Kind, Metric, Point, Profile, Query, Read, Tier

GPU = BOXES["rtx4090"].device(0)
NEW = "nvmlDeviceGetSomethingNew"


def metric(read: Read, typical: tuple[float, float] = (10, 20), **more: object) -> Metric:
    plain = Metric(
        name="nvidia.gpu.new",
        kind=Kind.GAUGE,
        unit="W",
        brief="Something new.",
        read=read,
        typical=typical,
    )
    return replace(plain, **more)  # type: ignore[arg-type] # the caller names members of Metric


def points(
    *metrics: Metric, device: Device = GPU, seconds: float = 100.0, seed: int = 0
) -> list[Point]:
    """Answer all questions of some metrics, and read them as the agent does."""
    places = index(metrics)
    chance, elapsed = Chance("typical", device.uuid, seed), Elapsed(seconds, 1000.0)
    answers = {
        query: Answer(0, answer(found, device, chance, elapsed)) for query, found in places.items()
    }
    return [point for one in metrics for point in one.read.read(device, answers)[0]]


def value(one: Metric, seconds: float = 100.0, seed: int = 0) -> float:
    [point] = points(one, seconds=seconds, seed=seed)
    return point.value


@given(
    st.floats(-1e6, 1e6),
    st.floats(0, 1e6),
    st.sampled_from([1, 1e-3, 1e-2, 1e-9, 1024, 1_000_000]),
    st.integers(0, 50),
    st.floats(0, 1e6),
)
def test_a_gauge_stays_in_its_typical_range_whatever_its_scale(
    low: float, width: float, scale: float, seed: int, seconds: float
) -> None:
    assume(abs(low) > 1e-6 or low == 0)
    one = metric(call(NEW, scale=scale), (low, low + width))
    got = value(one, seconds, seed)
    assert low - 1e-6 * abs(low) <= got <= low + width + 1e-6 * abs(low + width)


def test_a_gauge_wanders() -> None:
    one = metric(call(NEW, scale=1e-3))
    values = [value(one, seconds) for seconds in range(0, 900, 10)]
    assert len(set(values)) > 80
    assert max(values) - min(values) > 4
    assert max(abs(b - a) for a, b in pairwise(values)) < 8


def test_a_counter_grows_by_its_typical_amount_each_second() -> None:
    one = metric(call(NEW, scale=1e-3), (60, 700), kind=Kind.COUNTER)
    before, after = value(one, 100), value(one, 200)
    assert 60 <= (after - before) / 100 <= 700
    assert before > 60 * 1000  # the driver was loaded before


def test_a_counter_of_what_never_happens_stays_at_zero() -> None:
    one = metric(call(NEW), (0, 0), kind=Kind.COUNTER, unit="{error}", integer=True)
    assert [value(one, seconds) for seconds in (0, 1e6)] == [0, 0]


def test_a_static_value_stands_still_and_is_each_gpus_own() -> None:
    one = metric(call(NEW, scale=1e-3), (100, 900), tier=Tier.STATIC)
    assert value(one, 0) == value(one, 1e6)
    assert len({value(one, seed=seed) for seed in range(20)}) == 20


def test_a_count_is_a_whole_number_and_a_share_is_not() -> None:
    count = metric(call(NEW), (0, 16), unit="{link}", integer=True)
    share = metric(call(NEW), (0, 1), unit="1")
    assert all(isinstance(value(count, seconds), int) for seconds in range(0, 600, 60))
    assert any(0 < value(share, seconds) < 1 for seconds in range(0, 600, 60))


def test_a_fixed_flag_keeps_its_only_value() -> None:
    one = metric(call(NEW), (1, 1), unit="1", integer=True)
    assert value(one) == 1


def test_metrics_that_share_an_answer_find_their_numbers_in_one_struct() -> None:
    read = metric(call(NEW, path=("read", 1)), (10, 20), name="nvidia.gpu.a")
    write = metric(call(NEW, path=("write",), scale=1e-2), (0.3, 0.4), name="nvidia.gpu.b")
    first, second = points(read, write)
    assert 10 <= first.value <= 20
    assert 0.3 <= second.value <= 0.4


def test_every_form_that_names_its_numbers_is_answered() -> None:
    read = split(
        "nvidia.gpu.kind",
        {
            "either": either(field(900, scale=1e-3), call(NEW, 1)),
            "call": call(NEW, 2, profile=Profile.FULL),
        },
    )
    got = points(metric(read), metric(only(lambda _: True, call(NEW, 3), "always")))
    assert [point.attributes for point in got] == [
        (("nvidia.gpu.kind", "either"),),
        (("nvidia.gpu.kind", "call"),),
        (),
    ]
    assert all(10 <= point.value <= 20 for point in got)


def test_each_part_that_a_gpu_has_is_answered_and_no_other() -> None:
    one = metric(each("nvidia.gpu.fan", "fan", lambda device: device.fans, call(NEW)))
    places = index([one])
    got = [
        answer(places[query], GPU, Chance(1), Elapsed(1, 1)) is None for query in one.read.queries
    ]
    assert got == [False, False, False, True, True, True, True, True]


def test_what_a_function_hides_is_not_answered() -> None:
    assert index([metric(asking((Query(NEW),), lambda *_: [Point(1)]))]) == {}


def test_an_instance_is_answered_only_what_is_read_on_instances() -> None:
    part = instance(BOXES["a100-mig"].device(0), SEVEN[0])
    whole = metric(call(NEW, 1), name="nvidia.gpu.whole")
    shared = metric(call(NEW, 2), name="nvidia.gpu.shared", on_instance=True)
    places = index([whole, shared])
    got = [answer(found, part, Chance(1), Elapsed(1, 1)) for found in places.values()]
    assert got[0] is None
    assert 10 <= got[1] <= 20


@pytest.mark.parametrize(
    ("path", "made"),
    [
        ((), 5),
        (("a",), {"a": 5}),
        ((1,), [0, 5]),
        (("a", 2, "b"), {"a": [0, 0, {"b": 5}]}),
    ],
)
def test_a_number_is_put_where_its_path_leads(path: tuple[str | int, ...], made: object) -> None:
    assert put(None, path, 5) == made
    read = Ask(query=Query(NEW), path=path).read(GPU, {Query(NEW): Answer(0, made)})
    assert read == ([Point(5)], [])
