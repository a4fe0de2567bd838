"""Every number of the catalog arrives, exact and in base units, at the attributes it belongs to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.forms import Described, Supplied
from otel_gpu.catalog.judging import Judging
from otel_gpu.catalog.ranges import bounds
from otel_gpu.ledger import Batch, Page, fold
from otel_gpu.model import Answer, Code, Device, Metric, Point, Query
from otel_gpu.sweep import applicable
from tests.catalog.planting import Seed, answers, exact, planted, seeds
from tests.catalog.world import BLACKWELL, HOPPER, SLICE, VOLTA

DEVICES = [HOPPER, BLACKWELL, VOLTA, SLICE]

SEEDS = [(device, seed) for device in DEVICES for seed in seeds(CATALOG, device)]
READ = tuple(metric for metric in CATALOG if not isinstance(metric.read, Supplied))
QUERIES = sorted({query for metric in READ for query in metric.read.queries}, key=str)


def points(device: Device, metric: Metric, heard: dict[Query, Answer]) -> tuple[Point, ...]:
    """Read one metric as a sweep would, with everything else refused."""
    refusals = {query: Answer(Code.NOT_SUPPORTED) for query in metric.read.queries}
    page = fold(Page(), Batch(device, 1, 1.0, refusals | heard), [metric], 15.0)
    return page.readings[metric.name].points if metric.name in page.readings else ()


def label(value: object) -> str:
    if isinstance(value, Seed):
        return f"{value.metric.name}-{value.ask.query}{value.ask.path or ''}"
    return value.architecture if isinstance(value, Device) else str(value)


@pytest.mark.parametrize(("device", "seed"), SEEDS, ids=label)
def test_a_number_alone_gives_its_own_point_and_no_other(device: Device, seed: Seed) -> None:
    raw = planted(seeds(CATALOG, device))[seed.place]
    shared = [s for s in seeds([seed.metric], device) if s.place == seed.place]
    found = points(device, seed.metric, answers({seed.place: raw}))
    assert {(exact(raw, s.ask.scale), s.ask.attributes) for s in shared} == {
        (point.value, point.attributes) for point in found
    }


@pytest.mark.parametrize("device", DEVICES, ids=label)
def test_all_numbers_at_once_keep_apart(device: Device) -> None:
    found = seeds(CATALOG, device)
    raw = planted(found)
    heard = answers(raw)
    for metric in {seed.metric.name: seed.metric for seed in found}.values():
        expected: dict[Any, float] = {}
        for seed in (seed for seed in found if seed.metric is metric):
            # The first path to a point is the one that wins, so a later one changes nothing.
            expected.setdefault(seed.ask.attributes, exact(raw[seed.place], seed.ask.scale))
        assert {
            point.attributes: point.value for point in points(device, metric, heard)
        } == expected


@pytest.mark.parametrize("device", DEVICES, ids=label)
def test_no_two_points_of_a_metric_have_the_same_attributes(device: Device) -> None:
    heard = answers(planted(seeds(CATALOG, device)))
    for metric in applicable(CATALOG, device):
        attributes = [point.attributes for point in points(device, metric, heard)]
        assert len(attributes) == len(set(attributes)), metric.name


@pytest.mark.parametrize("device", DEVICES, ids=label)
def test_every_question_that_is_asked_was_planted(device: Device) -> None:
    """But for those of a metric whose numbers are behind a function."""
    for metric in applicable(CATALOG, device):
        found = {seed.ask.query for seed in seeds([metric], device)}
        asked = set(metric.read.wanted(device, lambda _: False))
        assert not found or found == asked, metric.name


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.text(max_size=4)
    | st.integers(-(2**65), 2**65)
    | st.sampled_from([0, 1, 57, 2**32 - 1, 2**63, 2**64 - 1])
    | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["gpu", "memory", "total", "used", "pid", "state", "none"]), inner
        )
    ),
    max_leaves=6,
)
OF_PROCESSES = {"nvidia.gpu.process.memory.usage", "nvidia.gpu.process.utilization"}
"""Where there is no process, there is nothing to tell of one."""

GIVEN = st.builds(Answer, st.sampled_from([*Code, 5, 77]), ANYTHING)
SAID = st.lists(GIVEN | st.builds(Answer, st.just(0), ANYTHING), min_size=1, max_size=7)


@given(said=SAID, step=st.integers(1, 97), device=st.sampled_from(DEVICES))
def test_whatever_the_driver_says_each_metric_is_a_true_reading_or_a_gap(
    said: list[Answer], step: int, device: Device
) -> None:
    heard = {query: said[place * step % len(said)] for place, query in enumerate(QUERIES)}
    metrics = applicable(CATALOG, device)
    page = fold(Page(), Batch(device, 1, 1.0, heard), metrics, 15.0)
    for metric in metrics:
        reading, gaps = page.readings.get(metric.name), page.gaps.get(metric.name)
        assert reading or gaps or metric.name in OF_PROCESSES, f"{metric.name} is silently missing"
        low, high = bounds(metric)
        for point in reading.points if reading else ():
            assert type(point.value) is (int if metric.integer else float)
            assert low <= point.value <= high
        for gap in gaps or ():
            assert gap.missing.detail
            assert gap.device == device.uuid


@pytest.mark.parametrize(
    "value", [None, True, "x", {}, [None], [{}], 2**32 - 1, 2**64 - 1, float("nan")], ids=str
)
def test_an_answer_of_the_wrong_shape_gives_no_number_anywhere(value: object) -> None:
    heard = dict.fromkeys(QUERIES, Answer(Code.SUCCESS, value))
    page = fold(Page(), Batch(HOPPER, 1, 1.0, heard), READ, 15.0)
    described = {metric.name for metric in READ if isinstance(metric.read, Described)}
    verdicts = {metric.name for metric in READ if isinstance(metric.read, Judging)}
    counts = {"nvidia.gpu.page_retirement.pages"} if isinstance(value, list) else set()
    assert set(page.readings) == described | verdicts | counts
    assert told("hw.status", page) == {"ok": 1, "degraded": 0, "predicted_failure": 0, "failed": 0}


def told(name: str, page: Page) -> dict[object, float]:
    """Give the value of each state."""
    return {point.attributes[0][1]: point.value for point in page.readings[name].points}


def test_an_empty_list_is_none_of_what_it_lists() -> None:
    heard = dict.fromkeys(QUERIES, Answer(Code.SUCCESS, []))
    page = fold(Page(), Batch(HOPPER, 1, 1.0, heard), READ, 15.0)
    counted = {"nvidia.gpu.process.active", "nvidia.gpu.page_retirement.pages"}
    for name in counted:
        assert set(told(name, page).values()) == {0}
    assert not OF_PROCESSES & page.readings.keys()
    assert not OF_PROCESSES & page.gaps.keys()
