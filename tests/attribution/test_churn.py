"""Ten thousand pods come and go, over a real socket: what is gone leaves no memory."""

import gc
import os
import tracemalloc
from pathlib import Path

import pytest

from otel_gpu.attribution import Claims, View, gathered, workloads
from otel_gpu.attribution.kubernetes.kubelet import Kubelet
from otel_gpu.attribution.kubernetes.source import Besides, KubernetesSource
from otel_gpu.attribution.processes import Processes
from otel_gpu.attribution.workloads import Books, Energy, Use
from otel_gpu.instruments import Instruments
from otel_gpu.model import Point, Snapshot
from tests.attribution.kubernetes.node import Node, container
from tests.attribution.proc import Proc
from tests.machine import gpu
from tests.observing import ALLOCATION, POWER, SUPPLIES, reading

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]

PODS, WARM = 10_000, 1_000
MOST_KB = 200
GPU = gpu(0)


def test_ten_thousand_pods_that_came_and_went_leave_no_memory(node: Node, tmp_path: Path) -> None:
    proc = Proc(tmp_path / "proc")
    logs = tmp_path / "logs"
    logs.mkdir()
    source = KubernetesSource(Kubelet(node.path), (), Besides(Processes(proc.path), logs))
    now = [Snapshot()]
    instruments = Instruments(
        (POWER, ALLOCATION), lambda: now[0], every={}, supplies=SUPPLIES, clock=lambda: 0.0
    )
    books, before = Books(), 0
    tracemalloc.start()
    for number in range(PODS):
        uid = f"7f6c1d2e-0000-4000-8000-{number:012}"
        # By its name: pathlib keeps a table of the parts of every path that there was.
        directory = f"{logs}/research_train-{number}_{uid}"
        os.mkdir(directory)  # noqa: PTH102
        node.pods.clear()
        node.asked.clear()
        node.give(f"train-{number}", container("main", GPU.uuid))
        proc.in_pod(7, uid)
        view = View([GPU], {GPU.uuid: (7,)})
        claims: Claims = source.claims(view)
        os.rmdir(directory)  # noqa: PTH106
        owned = gathered([claims], view)
        assert dict(owned.owners[GPU.uuid][0].resource) == {"k8s.pod.uid": uid}
        use = Use(GPU, owned.owners[GPU.uuid], energy=Energy(700.0 * number, 1, float(number)))
        books = workloads.charged(books, [use], float(number), number)
        now[0] = Snapshot(
            devices={GPU.uuid: GPU},
            readings=(reading(POWER, Point(700.0)),),
            owners=owned.owners,
            holders=owned.holders,
            energy=books.joules,
            held=books.seconds,
        )
        for metric in (POWER, ALLOCATION):
            assert len(instruments.observe(metric)) == 1
        if number == WARM:
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
    gc.collect()
    grown_kb = (tracemalloc.get_traced_memory()[0] - before) / 1024
    tracemalloc.stop()
    assert len(books.energy) <= workloads.KEPT_S + 2
    assert grown_kb < MOST_KB, f"{grown_kb:.0f} KB"
