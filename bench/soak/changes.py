"""Files that change under the agent: who owns which GPU, and its own configuration."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import yaml

from bench.soak.box import GPUS
from bench.soak.course import Course

STAYS_S = 17.0  # of a configuration
BAD = 0.1  # of the times, the file cannot be read: half of it is there, or nothing of it


CHANGES: Sequence[Mapping[str, Any]] = (
    {},
    {"metrics": {"profile": "standard", "enable": ["nvidia.gpu.process.*"]}},
    {"budgets": {"processes_per_gpu": 5}},
    {"sampling": {"fast": "2s"}},
    {"nonsense": True},  # is refused
    {"identity": "full"},
)
"""What is other than in the first configuration."""


class Owners:
    """Pods that get and give back GPUs; now and then the file is gone or torn."""

    def __init__(self, file: Path, course: Course) -> None:
        self._file, self._course = file, course
        self._random = Random(f"{course.seed}/owners")  # noqa: S311 - a timetable, not a secret
        self._pods = 0
        self.change()

    def change(self) -> None:
        """Give one in three GPUs to a new pod."""
        text = yaml.safe_dump([self._entry(gpu) for gpu in range(GPUS) if self._pods % 3 or gpu])
        fate = 1.0 if self._course.calm() else self._random.random()
        if fate < BAD / 2:
            self._file.unlink(missing_ok=True)
        elif fate < BAD:
            self._file.write_text(text[: len(text) // 2] + "[", encoding="utf-8")
        else:
            replace(self._file, text)
        self._course.tally.add("owners changed")

    def _entry(self, gpu: int) -> Mapping[str, Any]:
        self._pods += self._random.random() < 1 / 3
        pod = f"train-{gpu}-{self._pods}"
        return {
            "gpu": gpu,
            "attributes": {"k8s.namespace.name": f"team-{self._pods % 7}", "k8s.pod.name": pod},
            "resource": {"k8s.pod.uid": f"uid of {pod}"},
        }


class Configuration:
    """The agent's file; each change of it is followed by a SIGHUP."""

    def __init__(self, file: Path, config: Mapping[str, Any], course: Course) -> None:
        self._file, self._config, self._course = file, config, course
        self._turn, self._changed_s = 0, 0.0
        self._write(CHANGES[0])

    def reload(self, pid: int) -> None:
        """Give the agent the next of its configurations; in a calm, the first."""
        now_s, before = self._course.now_s(), self._turn
        if self._course.calm():
            self._turn = 0
        elif now_s - self._changed_s >= STAYS_S:
            self._turn = self._turn % (len(CHANGES) - 1) + 1
        if self._turn != before:
            self._write(CHANGES[self._turn])
            os.kill(pid, signal.SIGHUP)
            self._changed_s = now_s
            self._course.tally.add("reloads")

    def _write(self, change: Mapping[str, Any]) -> None:
        replace(self._file, json.dumps({**self._config, **change}))


def replace(file: Path, text: str) -> None:
    """Put a whole file in place of another, as a ConfigMap's change does."""
    new = file.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)
