from __future__ import annotations

from math import inf

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otel_gpu.backends.simulation.boxes import BOXES
from otel_gpu.backends.simulation.faulty import INIT, Fault
from otel_gpu.backends.simulation.spec import DEFAULT_LOAD, GRAMMAR, parse
from otel_gpu.model import ConfigError

POWER = "nvmlDeviceGetPowerUsage"
CALLS = {INIT, POWER, "nvmlDeviceGetTotalEnergyConsumption"}


def fault(text: str) -> Fault:
    [one] = parse(f"h200x8,fault={text}", CALLS).faults
    return one


def complaint(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, CALLS)
    return str(caught.value)


@pytest.mark.parametrize("text", ["", "  ", "h200x8"])
def test_nothing_said_means_eight_h200s(text: str) -> None:
    spec = parse(text, CALLS)
    assert (spec.box.name, spec.gpus, spec.seed, spec.faults) == ("h200x8", 8, 0, ())
    assert spec.load == DEFAULT_LOAD
    assert spec.start_s is None


@pytest.mark.parametrize("name", BOXES)
def test_every_box_can_be_asked_for_and_has_its_own_number_of_gpus(name: str) -> None:
    assert parse(name, CALLS).box is BOXES[name]
    assert parse(name, CALLS).gpus == BOXES[name].gpus


def test_options_follow_in_any_order() -> None:
    spec = parse("t4, load=0.6,seed=7,gpus=2,start=12.5", CALLS)
    assert (spec.box.name, spec.gpus, spec.seed) == ("t4", 2, 7)
    assert (spec.load, spec.start_s) == (0.6, 12.5)


def test_options_alone_are_for_the_default_box() -> None:
    assert parse("gpus=2", CALLS).box.name == "h200x8"


def test_a_lost_gpu_is_lost_for_good_or_comes_back() -> None:
    gone = fault("lost:GPU3@20s")
    assert (gone.call, gone.gpu, gone.code) == ("any", 3, 15)
    assert (gone.since_s, gone.until_s) == (20, inf)
    assert fault("lost:GPU3@20s-1m").until_s == 60


def test_a_call_can_be_refused_with_any_code() -> None:
    assert fault(f"unsupported:{POWER}").code == 3
    assert fault(f"refuse:4:{POWER}").code == 4
    assert fault("unsupported:field82").call == "field82"


def test_a_call_can_be_slow_or_hang() -> None:
    assert fault(f"slow:{POWER}:50ms").delay_s == 0.05
    assert fault("hang:any").delay_s == inf


def test_a_fault_can_be_narrowed_to_a_gpu_and_to_a_time() -> None:
    one = fault(f"hang:{POWER}@GPU1@5s-1.5m")
    assert (one.gpu, one.since_s, one.until_s) == (1, 5, 90)
    assert fault(f"hang:{POWER}@5s@GPU1").gpu == 1


def test_a_driver_can_be_absent_for_a_while() -> None:
    one = fault("absent@0s-20s")
    assert (one.call, one.code, one.since_s, one.until_s) == (INIT, 9, 0, 20)


def test_several_faults_are_kept_in_order() -> None:
    spec = parse(f"h200x8,fault=lost:GPU0,seed=1,fault=slow:{POWER}:1s", CALLS)
    assert [one.text for one in spec.faults] == ["lost:GPU0", f"slow:{POWER}:1s"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("h200x9", "there is no box 'h200x9'"),
        ("t4,colour=red", "'colour=red': it is not an option"),
        ("t4,", "'': it is not an option"),
        ("t4,gpus=0", "'gpus=0': write a whole number from 1 to 64"),
        ("t4,gpus=many", "'gpus=many': write a whole number from 1 to 64"),
        ("t4,gpus=1,gpus=2", "'gpus=2': it is there twice"),
        ("t4,load=1.5", "'load=1.5': write a number from 0 to 1"),
        ("t4,load=nan", "'load=nan': write a number from 0 to 1"),
        ("t4,seed=-1", "'seed=-1': write a whole number"),
        ("t4,fault=fire", "fault 'fire': 'fire' is not a kind of fault"),
        ("t4,fault=lost", "fault 'lost': write lost:GPU3"),
        ("t4,fault=lost:3", "fault 'lost:3': '3' is not a GPU such as GPU0"),
        ("t4,fault=lost:GPU4", "fault 'lost:GPU4': there is no GPU4; the last is GPU3"),
        ("t4,gpus=2,fault=lost:GPU2", "there is no GPU2; the last is GPU1"),
        ("t4,fault=lost:GPU1@GPU2", "@GPU2: gpu is said twice"),
        ("t4,fault=lost:GPU1@20", "'20' is not a time such as 50ms, 20s, 5m or 1h"),
        ("t4,fault=lost:GPU1@20s-10s", "'20s-10s' ends before it begins"),
        ("t4,fault=lost:GPU1@1s@2s", "since_s and until_s is said twice"),
        (f"t4,fault=refuse:0:{POWER}", "write a whole number from 1 to 999"),
        (f"t4,fault=slow:{POWER}", f"fault 'slow:{POWER}': write slow:CALL:50ms"),
        ("t4,fault=hang:nvmlDeviceGetPowerUsag", f"the nearest is {POWER}"),
        ("t4,fault=absent@GPU0", "it is about the whole driver: leave out @GPU"),
        (f"t4,fault=hang:{INIT}@GPU0", "it is about the whole driver: leave out @GPU"),
    ],
)
def test_a_bad_spec_is_told_what_is_wrong_and_what_can_be_written(text: str, says: str) -> None:
    told, grammar = complaint(text).split("\n")
    assert told.startswith(f"simulated:{text!r}: ")
    assert says in told
    assert grammar == GRAMMAR


def test_all_faults_of_a_spec_are_told_at_once() -> None:
    lines = complaint("h200x9,colour=red,load=2,fault=fire,fault=lost:GPU9").split("\n")
    assert len(lines) == 6


def test_the_grammar_names_every_box_and_every_kind_of_fault() -> None:
    words = (*BOXES, "lost:", "unsupported:", "refuse:", "slow:", "hang:", "absent", "start=")
    assert all(word in GRAMMAR for word in words)


WORDS = st.sampled_from(
    [
        *("gpus=", "seed=", "load=", "fault=", "lost:", "slow:", "hang:", "refuse:", "absent"),
        *("GPU", "@", "-", ",", ":", "=", "1", "9" * 30, "20s", "any", "field82", POWER),
        *BOXES,
    ]
)


@given(st.text() | st.lists(WORDS, max_size=8).map("".join))
@example("gpus=" + "9" * 5000)
@example("load=" + "9" * 500)
@example("fault=slow:any:" + "9" * 400 + "h")
@example("fault=lost:GPU²")
def test_garbage_is_a_spec_or_a_readable_error_and_nothing_else(text: str) -> None:
    try:
        spec = parse(text, CALLS)
    except ConfigError as error:
        told = str(error).split("\n")
        assert told[-1] == GRAMMAR
    else:
        assert spec.box.name in BOXES
        assert 1 <= spec.gpus <= 64
        assert 0 <= spec.load <= 1
        assert all(fault.gpu is None or fault.gpu < spec.gpus for fault in spec.faults)
