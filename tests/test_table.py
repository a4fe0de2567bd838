"""The last column of the table: who holds a GPU, in few words."""

import pytest

from otel_gpu.model import Owner, Snapshot
from otel_gpu.table import owner

POD = Owner(
    (
        ("k8s.namespace.name", "research"),
        ("k8s.pod.name", "train-0"),
        ("k8s.container.name", "main"),
        ("k8s.pod.label.team", "vision"),
    )
)
JOB = Owner((("slurm.job.id", "4711"), ("slurm.user", "ada")))
BOX = Owner((("container.id", "c0ffee" * 11),))


@pytest.mark.parametrize(
    ("owners", "words"),
    [
        ((POD,), "research/train-0"),
        ((JOB,), "4711/ada"),
        ((BOX,), "c0ffee" * 6 + "c0ff"),
        ((POD, JOB, BOX), "research/train-0 +2"),
        ((), "-"),
    ],
)
def test_who_holds_a_gpu_is_said_in_few_words(owners: tuple[Owner, ...], words: str) -> None:
    assert owner(Snapshot(owners={"GPU-0": owners}), "GPU-0") == words
