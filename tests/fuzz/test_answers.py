"""A hundred thousand random answers, and more: what is published is true in kind, or is a gap."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.forms import Supplied
from otel_gpu.ledger import Batch, Page, fold
from otel_gpu.model import Answer, Device, Metric, Query, Reason, Snapshot
from tests.catalog.world import A100, BLACKWELL, HOPPER, SLICE, VOLTA, WORLD
from tests.fuzz.answers import CODES, FLOATS, OTHERS, WHOLE
from tests.fuzz.bench import Bench
from tests.fuzz.judging import Judge

pytestmark = pytest.mark.thorough

SHARES, EACH = 11, 10_000
"""Answers, in shares that several processes of a test run can take."""

CALM_SWEEPS = 70  # the slowest tier's minute, and a bit


@pytest.mark.parametrize("share", range(SHARES))
def test_whatever_a_driver_answers_nothing_untrue_is_published(
    share: int, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(share)
    try:
        bench.run(EACH)
    except BaseException as error:
        error.add_note(f"share {share}, sweep {bench.sweeps}")
        raise
    assert bench.driver.given >= EACH
    assert bench.complaints == []
    assert [record.getMessage() for record in caplog.records] == []
    assert bench.read, "nothing was read, so nothing was judged"
    assert bench.lacked.keys() >= {Reason.INVALID, Reason.UNSUPPORTED, Reason.LOST}


def test_of_a_sound_driver_every_metric_is_read() -> None:
    bench = Bench("sound", calm=True)
    for _ in range(CALM_SWEEPS):
        bench.turn()
    assert bench.complaints == []
    assert {metric.name for metric in ASKING} - bench.read.keys() == set()


ASKING = tuple(metric for metric in CATALOG if not isinstance(metric.read, Supplied))
DEVICES = (HOPPER, BLACKWELL, VOLTA, A100, SLICE)
ODD = st.sampled_from(WHOLE) | st.sampled_from(FLOATS) | st.sampled_from(OTHERS)
VALUES: st.SearchStrategy[Any] = st.recursive(
    ODD | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 3), inner, max_size=3)
    ),
    max_leaves=6,
)
SOUND = tuple(WORLD.values())
ANSWERS = st.builds(Answer, st.just(0), VALUES | st.sampled_from(SOUND)) | st.builds(
    Answer, st.sampled_from(CODES) | st.integers(-(2**31), 2**31 - 1), VALUES
)

# Derandomized, so that CI says the same of the same tree; the values are large on purpose.
SMALL = settings(
    max_examples=10,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("metric", ASKING, ids=lambda metric: metric.name)
@SMALL
@given(data=st.data())
def test_whatever_one_metric_is_answered_it_is_a_point_or_a_gap(
    metric: Metric, data: st.DataObject
) -> None:
    """The same for one metric at a time, which can be made smaller when it fails."""
    device = data.draw(st.sampled_from(DEVICES), "device")
    judge, page = Judge((metric,)), Page()
    for sweep in range(1, 3):
        page = fold(page, drawn(metric, device, page, data, sweep), [metric], 15.0)
        gaps = tuple(gap for several in page.gaps.values() for gap in several)
        snapshot = Snapshot(
            devices={device.uuid: device}, readings=tuple(page.readings.values()), gaps=gaps
        )
        assert judge.complaints(snapshot, {device.uuid}, anew=True) == []


def drawn(metric: Metric, device: Device, page: Page, data: st.DataObject, sweep: int) -> Batch:
    """Answer what the metric asks: most of it in one way, and one question in another."""
    asked = metric.read.wanted(device, page.served.__contains__)
    most = data.draw(ANSWERS, "most")
    answers: dict[Query, Answer] = dict.fromkeys(asked, most)
    if asked:
        answers[data.draw(st.sampled_from(asked), "question")] = data.draw(ANSWERS, "one")
    return Batch(device, sweep * 10**18, float(sweep), answers)
