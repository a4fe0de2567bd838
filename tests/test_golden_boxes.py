"""Simulated boxes, and what the whole agent makes of them: one page each.

`pytest tests/test_golden_boxes.py --accept` rewrites the golden files; the difference is the
review.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_gpu.backends.direct import Direct
from otel_gpu.backends.simulated import SimulatedBackend
from otel_gpu.backends.simulation.boxes import BOXES
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.census import select
from otel_gpu.model import NODE, Profile
from otel_gpu.pipeline.exposition import Exposition, Format
from otel_gpu.sampler import Clock, Plan, Sampler, tiers
from otel_gpu.sweep import intervals
from tests.test_golden import SECONDS, Steps, collected

GOLDEN = Path(__file__).parent / "golden" / "boxes"
BEGIN_S = 450.0  # every box trains; one of two L4s and of two T4s is idle
GPUS = {"a100-mig": 1, "rtx4090": 1, "gb10": 1}
TWO = 2  # so that they have a peer


def swept(box: str) -> tuple[Sampler, Steps]:
    """Sweep a box as the agent would, second by second, with the full profile."""
    steps = Steps()
    steps.seconds = BEGIN_S
    backend = SimulatedBackend.from_spec(
        f"{box},gpus={GPUS.get(box, TWO)}", clock=steps.monotonic, time_ns=steps.unix_ns
    )
    driver = Direct(backend, monotonic=steps.monotonic)
    metrics = select(CATALOG, Profile.FULL, ["*"])
    every = intervals(metrics, tiers(1.0, 5.0, 60.0), lambda _: None)
    clock = Clock(monotonic=steps.monotonic, unix_ns=steps.unix_ns)
    sampler = Sampler(driver, Plan(metrics=metrics, every=every), clock=clock)
    for second in range(SECONDS):
        steps.seconds = BEGIN_S + second
        sampler.step()
    return sampler, steps


@pytest.mark.parametrize("box", BOXES)
def test_a_box_gives_the_same_page(box: str, *, accept: bool) -> None:
    sampler, steps = swept(box)
    data, resources = collected(sampler.snapshot, steps)
    page = Exposition().render(data, Format.TEXT, resources(NODE)).decode()
    path = GOLDEN / f"{box}.prom"
    if accept:
        path.parent.mkdir(exist_ok=True)
        path.write_text(page, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == page, "look at the difference, then --accept"


def test_no_page_is_of_a_box_that_is_gone() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == BOXES.keys()
