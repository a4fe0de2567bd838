"""Every number that is planted in the C library comes back through pynvml and the backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from otel_gpu.model import Answer, Query
from otel_gpu.worker.process import Worker
from tests.fake_nvml.facts import METRIC, Source
from tests.fake_nvml.machine import FakeNvml, Values
from tests.fake_nvml.planting import UUIDS, boards, numbers, plant
from tests.fake_nvml.rounds import knows


def askable(raw: dict[Source, Any]) -> list[Source]:
    """Give what the backend can be asked for: metrics of GPM are no questions of their own."""
    return [one for one in raw if one.query.call != METRIC and knows(one.query)]


def found(answer: Answer, source: Source) -> Any:
    """Look where the source's number stands in an answer; a refusal is its code."""
    if not answer.ok:
        return f"code {answer.code}"
    value = answer.value
    for step in source.path:
        value = value[step]
    return value


@pytest.fixture
def worker(fake_nvml: FakeNvml) -> Iterator[Worker]:
    """Start the real worker on the real backend, once the machine is written."""
    fake_nvml.write()
    worker = Worker.start("nvml")
    yield worker
    worker.close()


@pytest.mark.parametrize("board", UUIDS)
def test_each_number_is_found_where_it_belongs_and_follows_its_changes(
    fake_nvml: FakeNvml, worker: Worker, board: str
) -> None:
    devices = boards(fake_nvml)
    fake_nvml.write()
    worker.open()
    for turn in range(2):
        raw = numbers(turn)[board]
        plant(devices[board], raw)
        fake_nvml.write()
        sources = askable(raw)
        assert sources
        queries = [source.query for source in sources]
        (answered,) = worker.ask([(UUIDS[board], queries)])
        got = {
            str(source): found(answer, source)
            for source, answer in zip(sources, answered.answers, strict=True)
        }
        assert got == {str(source): raw[source] for source in sources}


# Lists and texts, as the file says them and as the backend gives them.
SHAPES: list[tuple[str, Values, Query, Any]] = [
    (
        "nvmlDeviceGetSamples(0)",
        [{"timeStamp": 5, "uint": 7}, {"timeStamp": 6, "uint": 9}],
        Query("nvmlDeviceGetSamples", (0, 0)),
        [[5, 7], [6, 9]],
    ),
    (
        "nvmlDeviceGetSamples(1)",
        [{"timeStamp": 5, "double": 7.5}, {"timeStamp": 6, "double": -9.25}],
        Query("nvmlDeviceGetSamples", (1, 5)),
        [[6, -9.25]],
    ),
    (
        "nvmlDeviceGetRetiredPages_v2(0)",
        [{"address": 2**40, "timestamp": 11}, {"address": 3, "timestamp": 12}],
        Query("nvmlDeviceGetRetiredPages_v2", (0,)),
        [{"address": 2**40, "timestamp": 11}, {"address": 3, "timestamp": 12}],
    ),
    (
        "nvmlDeviceGetViolationStatus(1)",
        {"referenceTime": 1_796_067_599_372_584, "violationTime": 7_943_461_536},
        Query("nvmlDeviceGetViolationStatus", (1,)),
        {"referenceTime": 1_796_067_599_372_584, "violationTime": 7_943_461_536},
    ),
    (
        "nvmlDeviceGetSerial",
        'a "quoted" \\ text',
        Query("nvmlDeviceGetSerial"),
        'a "quoted" \\ text',
    ),
    (
        "nvmlDeviceGetNvLinkErrorCounter(17,4)",
        223,
        Query("nvmlDeviceGetNvLinkErrorCounter", (17, 4)),
        223,
    ),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape[0])
def test_an_answer_of_any_shape_arrives(
    fake_nvml: FakeNvml, worker: Worker, shape: tuple[str, Values, Query, Any]
) -> None:
    line, said, query, value = shape
    fake_nvml.gpu(0, "GPU-a").says(line, said)
    fake_nvml.write()
    worker.open()
    (answered,) = worker.ask([("GPU-a", [query])])
    assert answered.answers == [Answer(0, value)]
