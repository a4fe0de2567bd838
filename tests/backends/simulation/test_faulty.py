from __future__ import annotations

import threading
from math import inf

import pytest

from otel_gpu.backends.simulation.faulty import INIT, Fault, Faults, forever
from otel_gpu.catalog.reading import FIELD
from otel_gpu.model import Query

POWER = Query("nvmlDeviceGetPowerUsage")
FIELD_82, FIELD_186 = Query(FIELD, (82, 0)), Query(FIELD, (186, 0))


def meets(fault: Fault, query: Query = POWER, gpu: int | None = 0, now_s: float = 0) -> bool:
    return fault.meets(query, gpu, now_s)


def test_a_fault_hits_the_call_that_it_names_and_no_other() -> None:
    fault = Fault(text="", call=POWER.call, code=3)
    assert meets(fault)
    assert not meets(fault, Query("nvmlDeviceGetTemperature", (0,)))


def test_a_fault_of_one_gpu_spares_the_others() -> None:
    fault = Fault(text="", call=POWER.call, gpu=1, code=3)
    assert [meets(fault, gpu=gpu) for gpu in (0, 1, 2)] == [False, True, False]


def test_a_fault_begins_and_ends_at_its_moments() -> None:
    fault = Fault(text="", call="any", code=15, since_s=5, until_s=30)
    moments = (0, 4.999, 5, 29.999, 30)
    assert [meets(fault, now_s=now) for now in moments] == [False, False, True, True, False]


def test_a_field_can_be_meant_alone_or_with_all_others() -> None:
    one, every = Fault(text="", call="field82", code=3), Fault(text="", call=FIELD, code=3)
    assert [meets(one, query) for query in (FIELD_82, FIELD_186, POWER)] == [True, False, False]
    assert [meets(every, query) for query in (FIELD_82, FIELD_186, POWER)] == [True, True, False]


def test_any_means_every_call_about_a_gpu_but_not_the_drivers_own() -> None:
    fault = Fault(text="", call="any", code=999)
    assert meets(fault)
    assert meets(fault, FIELD_82)
    assert not meets(fault, Query(INIT), gpu=None)


def test_delays_add_up_and_the_first_refusal_counts() -> None:
    slept: list[float] = []
    faults = Faults(
        [
            Fault(text="a", call=POWER.call, delay_s=0.05),
            Fault(text="b", call="any", delay_s=0.2, code=4),
            Fault(text="c", call="any", code=3),
        ],
        sleep=slept.append,
    )
    struck = faults.strike(POWER, 0, 0)
    assert slept == [0.05, 0.2]
    assert struck is not None
    assert struck.text == "b"


def test_a_call_that_no_fault_names_is_left_in_peace() -> None:
    slept: list[float] = []
    faults = Faults([Fault(text="", call="field82", delay_s=1, code=3)], sleep=slept.append)
    assert faults.strike(POWER, 0, 0) is None
    assert slept == []


@pytest.mark.parametrize("call", [FIELD, "any", "field82"])
def test_fields_that_travel_together_wait_once(call: str) -> None:
    slept: list[float] = []
    faults = Faults([Fault(text="", call=call, delay_s=0.05)], sleep=slept.append)
    faults.strike(FIELD_186, 0, 0)
    faults.strike(FIELD_82, 0, 0, travels=True)
    faults.strike(Query(FIELD, (190, 0)), 0, 0, travels=True)
    assert slept == [0.05]


def test_an_endless_delay_hangs() -> None:
    hung: list[bool] = []
    faults = Faults([Fault(text="", call="any", delay_s=inf)], hang=lambda: hung.append(True))
    faults.strike(POWER, 0, 0)
    assert hung == [True]


def test_for_ever_does_not_end() -> None:
    thread = threading.Thread(target=forever, daemon=True)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()
