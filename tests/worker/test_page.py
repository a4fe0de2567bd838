from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_gpu.worker.page import ROOM, CallPage, Flight

names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@pytest.fixture
def page() -> Iterator[CallPage]:
    page = CallPage.create()
    yield page
    page.close()


def test_a_new_page_tells_of_no_call(page: CallPage) -> None:
    assert page.read() == Flight(0, "", "")


def test_what_one_end_notes_the_other_end_reads(page: CallPage) -> None:
    other = CallPage(os.dup(page.fd))
    other.note("GPU-a", "nvmlDeviceGetPowerUsage")
    other.note("GPU-b", "nvmlDeviceGetFieldValues")
    assert page.read() == Flight(2, "GPU-b", "nvmlDeviceGetFieldValues")
    other.close()


@given(uuid=names, call=names)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # each note replaces the last
def test_any_names_come_back(page: CallPage, uuid: str, call: str) -> None:
    page.note(uuid, call)
    assert page.read()[1:] == (uuid, call)


def test_a_name_that_is_too_long_is_cut(page: CallPage) -> None:
    page.note("GPU-a", "x" * 10 * ROOM)
    assert page.read().call == "x" * (ROOM - len("GPU-a\0"))
