from __future__ import annotations

from otel_gpu.catalog.reading import call, supplied
from otel_gpu.doctor.matrix import Cell, Matrix, detail, label, support
from otel_gpu.model import (
    Device,
    Gap,
    Kind,
    Metric,
    Missing,
    Point,
    Reading,
    Reason,
    Snapshot,
    Tier,
)

GPU = Device(uuid="GPU-0", index=0, minor=0)
LOST = Device(uuid="GPU-1", index=1, minor=1)
PART = Device(uuid="MIG-0", index=0, minor=0, parent="GPU-0", gpu_instance=3, compute_instance=0)


def metric(name: str, *, on_instance: bool = False, tier: Tier = Tier.DEFAULT) -> Metric:
    return Metric(
        name=name,
        kind=Kind.GAUGE,
        unit="W",
        brief=".",
        read=call("nvmlDeviceGetPowerUsage"),
        on_instance=on_instance,
        tier=tier,
    )


POWER, MEMORY = metric("hw.power"), metric("hw.gpu.memory.usage", on_instance=True)
EVENT = metric("hw.errors", tier=Tier.EVENT)
OWN = Metric(name="otel_gpu.up", kind=Kind.GAUGE, unit="1", brief=".", read=supplied("the agent"))
HOT = Missing(Reason.UNSUPPORTED, "no sensor", (("hw.sensor", "memory"),))
SNAPSHOT = Snapshot(
    devices={"GPU-0": GPU, "MIG-0": PART, "GPU-1": LOST},
    up={"GPU-0": True, "MIG-0": True, "GPU-1": False},
    readings=(
        Reading(POWER, "GPU-0", (Point(1), Point(2)), 0, 0.0),
        Reading(MEMORY, "GPU-0", (Point(1),), 0, 0.0),
    ),
    gaps=(
        Gap("hw.power", "GPU-0", HOT),
        Gap("hw.power", "GPU-1", Missing(Reason.LOST, "gone")),
        Gap("hw.gpu.memory.usage", "GPU-1", Missing(Reason.LOST, "gone")),
    ),
)
MATRIX = support(SNAPSHOT, (POWER, MEMORY, EVENT, OWN))


def test_the_matrix_has_a_row_for_each_metric_that_a_sweep_reads() -> None:
    assert [row.metric for row in MATRIX.rows] == ["hw.power", "hw.gpu.memory.usage"]
    assert MATRIX.up == (True, True, False)


def test_each_cell_tells_whether_all_some_or_nothing_was_read() -> None:
    power, memory = MATRIX.rows
    assert [cell.state if cell else None for cell in power.cells] == ["partial", None, "lost"]
    assert [cell.state if cell else None for cell in memory.cells] == ["ok", "nothing", "lost"]


def test_what_is_missing_is_told_with_its_attributes_and_the_question() -> None:
    assert detail(HOT) == "hw.sensor=memory: unsupported: no sensor"
    assert Cell(1, (HOT,)).details == ("hw.sensor=memory: unsupported: no sensor",)
    assert detail(Missing(Reason.LOST, "gone")) == "lost: gone"


def test_gpus_that_do_not_answer_can_be_left_out() -> None:
    assert MATRIX.silent == (LOST,)
    answering = MATRIX.answering()
    assert answering.devices == (GPU, PART)
    assert answering.silent == ()
    assert answering.gaps({Reason.LOST}) == {}


def test_gaps_are_found_by_reason() -> None:
    assert MATRIX.gaps({Reason.LOST}) == {
        "hw.power": ("nvidia1",),
        "hw.gpu.memory.usage": ("nvidia1",),
    }
    assert MATRIX.gaps({Reason.UNSUPPORTED}) == {"hw.power (in part)": ("nvidia0",)}
    assert MATRIX.gaps(()) == {}


def test_an_instance_is_named_by_its_place() -> None:
    assert label(GPU) == "nvidia0"
    assert label(PART) == "nvidia0/gi3/ci0"


def test_nothing_read_makes_an_empty_matrix() -> None:
    assert support(Snapshot(), (POWER,)) == Matrix()
