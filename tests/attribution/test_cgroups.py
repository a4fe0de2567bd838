"""Each form that /proc/PID/cgroup takes, as text files, and what it tells."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.attribution.cgroups import Place, place

HERE = Path(__file__).parent / "cgroups"
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "expected.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_process_runs_where_its_cgroup_says(name: str) -> None:
    told = EXPECTED[name]
    text = (HERE / f"{name}.txt").read_bytes().decode("utf-8", "replace")
    assert place(text) == Place(
        told["pod"] or "", told["container"] or "", told["job"] or "", told["uid"]
    ), told["about"]


def test_every_file_has_its_expectation() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == EXPECTED.keys()


@given(st.text(max_size=300))
def test_whatever_is_read_is_a_place(text: str) -> None:
    assert isinstance(place(text), Place)
