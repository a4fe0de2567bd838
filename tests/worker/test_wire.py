from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.model import Answer, Code, Device, Query, Refused, System
from otel_gpu.worker.frames import Unpacker, pack
from otel_gpu.worker.wire import (
    Answered,
    answered,
    plain_answers,
    plain_questions,
    plain_system,
    system,
)

devices = st.builds(Device)
refusals = st.builds(Refused, code=st.sampled_from(Code) | st.integers(0, 999))
systems = st.builds(
    System,
    devices=st.lists(devices, max_size=3).map(tuple),
    refused=st.lists(refusals, max_size=3).map(tuple),
)


def sent(message: Any) -> Any:
    (received,) = Unpacker().feed(pack(message))
    return received


@given(systems)
def test_a_system_arrives_as_it_was_sent(original: System) -> None:
    assert system(sent(plain_system(original))) == original


def test_answers_arrive_as_they_were_sent_and_codes_as_numbers() -> None:
    answers = [Answer(0, {"used": 1, "list": [1.5, None]}), Answer(Code.NOT_SUPPORTED)]
    message = ("answers", "GPU-a", 1.5, plain_answers(answers))
    assert answered(sent(message)) == Answered("GPU-a", 1.5, answers)


def test_questions_travel_as_calls_and_arguments() -> None:
    questions = [("GPU-a", [Query("nvmlDeviceGetClockInfo", (1,)), Query("nvmlDeviceGetName")])]
    assert sent(plain_questions(questions)) == [
        ("GPU-a", [("nvmlDeviceGetClockInfo", (1,)), ("nvmlDeviceGetName", ())])
    ]
