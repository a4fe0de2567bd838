"""Each fault is told in the user's words, where it stands, and all of them at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_gpu.config import Fault, check, load
from otel_gpu.model import ConfigError

from .given import Faults, Write

CASES = (Path(__file__).parent / "faults.txt").read_text(encoding="utf-8").strip()
ONE = [case.split("\n=> ") for case in CASES.split("\n\n")[1:]]


@pytest.mark.parametrize(("text", "fault"), ONE)
def test_a_fault_says_where_it_is_what_it_is_and_what_to_do(
    text: str, fault: str, faults: Faults, installed_parts: str
) -> None:
    assert faults(text) == [f"agent.yaml:{fault}".replace("{installed}", installed_parts)]


def test_no_message_repeats_a_secret() -> None:
    assert not [fault for _, fault in ONE if "hunter2" in fault]


def test_every_fault_is_told_at_once_in_the_order_of_the_lines(faults: Faults) -> None:
    text = "telemetry: {log_level: loud}\nsampling:\n  fast: 1ms\n  fast: 2ms\nmetrics: {x: 1}\n"
    assert faults(text, {"OTEL_GPU_IDENTITY": "all"}, backend="x") == [
        "agent.yaml:2: telemetry.log_level: loud is none of debug, info, warning, error",
        "agent.yaml:4: sampling.fast: 1ms is under the minimum of 100ms",
        "agent.yaml:5: sampling.fast: is set twice; first in line 4",
        "agent.yaml:6: metrics.x: unknown key; the keys here are profile, enable, disable, tiers",
        "flag: backend: x is none of nvml, simulated, simulated:SPEC, recorded:FILE",
        "OTEL_GPU_IDENTITY: identity: all is none of minimal, full",
    ]


def test_two_tiers_out_of_order_are_two_faults(faults: Faults) -> None:
    assert faults("sampling: {fast: 3s, default: 2s, slow: 1s}") == [
        "agent.yaml:2: sampling.fast: 3s is over sampling.default, which is 2s",
        "agent.yaml:2: sampling.default: 2s is over sampling.slow, which is 1s",
    ]


def test_the_error_has_one_line_for_each_fault(write: Write) -> None:
    path = write("sampling: {fsat: 1s}\nfoo: 1\n")
    with pytest.raises(ConfigError) as raised:
        load(path, {}, {})
    assert str(raised.value).splitlines() == [str(fault) for fault in check(path, {}, {})]
    assert len(check(path, {}, {})) == 2


def test_a_fault_has_its_place_its_key_and_its_words(write: Write) -> None:
    path = write("gpus: {mig: none}")
    words = "none is none of instances, gpus, both"
    assert check(path) == [Fault(f"{path}:2", "gpus.mig", words)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "1: version: is missing; begin the file with version: 1"),
        ("backend: nvml", "1: version: is missing; begin the file with version: 1"),
        (
            "backend: nvml\nversion: 2",
            "2: version: 2 is not a version that this otel-gpu reads; the only one is 1",
        ),
        (
            "version: true",
            "1: version: true is not a version that this otel-gpu reads; the only one is 1",
        ),
        ("- version: 1", "1: a list is not a configuration; begin with version: 1"),
        ("hello", "1: hello is not a configuration; begin with version: 1"),
        ("a: b: c", "1:5: is not YAML: mapping values are not allowed here"),
    ],
)
def test_a_file_that_is_no_configuration_says_how_one_begins(
    text: str, fault: str, tmp_path: Path
) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text(text, encoding="utf-8")
    assert [str(each) for each in check(path)] == [f"{path}:{fault}"]


def test_a_file_that_is_not_there_is_a_fault_beside_the_others(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    assert [str(each) for each in check(path, {}, {"identity": "x"})] == [
        f"{path}: there is no such file; give another --config, or none for the defaults",
        "flag: identity: x is none of minimal, full",
    ]


def test_only_what_is_in_force_is_judged(faults: Faults) -> None:
    assert faults("identity: x\n", identity="full") == []
