from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.backends.capture import (
    Capture,
    load,
    parse_query,
    plain,
    read,
    render,
    unrepeated,
    write,
)
from otel_gpu.model import Answer, BackendError, Code, Device, Query, Refused, System

DEVICE = {"uuid": "GPU-a", "index": 0, "minor": 0, "model": "NVIDIA H200"}
CONTENTS: dict[str, Any] = {
    "format": 1,
    "label": "two sweeps",
    "recorded": "2026-01-31",
    "system": {"driver_version": "580.159.04"},
    "devices": [
        {
            "device": DEVICE,
            "answers": {
                "nvmlDeviceGetPowerUsage": [[0, 689380], [0, 690000]],
                "nvmlDeviceGetFieldValues(186, 0)": [[0, 683069]],
                "nvmlDeviceGetFanSpeed": [[3]],
            },
        }
    ],
    "refused": [{"index": 1, "code": 15, "uuid": "GPU-b"}],
}

calls = st.text("abcXYZ_012", min_size=1)
queries = st.builds(Query, calls, st.lists(st.integers(), max_size=3).map(tuple))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=3,
)
answers = st.builds(Answer, st.just(0), values)


@given(queries)
def test_a_query_is_read_as_it_is_written(query: Query) -> None:
    assert parse_query(str(query)) == query


@pytest.mark.parametrize("text", ["", "a b", "call(", "call()", "call(1,2)", "call(x)", "call(1) "])
def test_other_text_is_no_query(text: str) -> None:
    with pytest.raises(ValueError, match="is no query"):
        parse_query(text)


def test_the_contents_are_understood() -> None:
    capture = read(CONTENTS)
    assert capture.system == System(
        driver_version="580.159.04",
        devices=(Device(uuid="GPU-a", index=0, minor=0, model="NVIDIA H200"),),
        refused=(Refused(1, 15, "GPU-b"),),
    )
    assert capture.told["GPU-a"] == {
        Query("nvmlDeviceGetPowerUsage"): [Answer(0, 689380), Answer(0, 690000)],
        Query("nvmlDeviceGetFieldValues", (186, 0)): [Answer(0, 683069)],
        Query("nvmlDeviceGetFanSpeed"): [Answer(3)],
    }


@given(
    st.dictionaries(
        queries, st.lists(st.builds(Answer, st.just(0), values), min_size=1, max_size=4), max_size=3
    )
)
def test_a_recording_is_read_as_it_was_written(told: dict[Query, list[Answer]]) -> None:
    system = System(
        devices=(Device(uuid="GPU-a", index=0, minor=0),), refused=(Refused(1, Code.GPU_IS_LOST),)
    )
    again = read(json.loads(render(plain(Capture(system, {"GPU-a": told}, "label", "2026-01-31")))))
    assert (again.system, again.label, again.recorded) == (system, "label", "2026-01-31")
    for query, answers in told.items():
        got = again.told["GPU-a"][query]
        assert [*got, *[got[-1]] * (len(answers) - len(got))] == answers


def test_what_a_replay_repeats_by_itself_is_not_written() -> None:
    assert unrepeated([[3], [0, 1], [0, 1], [0, 1]]) == [[3], [0, 1]]
    assert unrepeated([[0, 1], [0, 2], [0, 1]]) == [[0, 1], [0, 2], [0, 1]]
    assert unrepeated([[3], [3]]) == [[3]]


def test_a_diff_shows_one_query_a_line(tmp_path: Path) -> None:
    write(tmp_path / "capture.json", CONTENTS)
    lines = (tmp_path / "capture.json").read_text().splitlines()
    assert '    "nvmlDeviceGetPowerUsage": [[0, 689380], [0, 690000]],' in lines
    assert json.loads("\n".join(lines)) == CONTENTS


def changed(**more: Any) -> str:
    return json.dumps(CONTENTS | more)


ONE = {"device": DEVICE, "answers": {}}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "line 1 column 2"),
        ("[]", "the file: list indices must be"),
        ("{}", "the file: 'format' is missing"),
        (changed(format=2), "the file: format 2 is not 1"),
        (changed(devices=3), "devices: 'int' object is not iterable"),
        (changed(devices=[{}]), r"devices\[0\]: 'device' is missing"),
        (changed(devices=[ONE | {"device": {"uuid": "x"}}]), r"devices\[0\]: .*'index'"),
        (changed(devices=[ONE | {"device": DEVICE | {"u": 1}}]), r"devices\[0\]: .*'u'"),
        (
            changed(devices=[ONE, ONE | {"answers": {"f(": [[3]]}}]),
            r"devices\[1\]: f\(: .*query",
        ),
        (changed(devices=[ONE | {"answers": {"f": []}}]), r"devices\[0\]: f: there is no answer"),
        (changed(devices=[ONE | {"answers": {"f": [[]]}}]), r"devices\[0\]: f: .*'code'"),
        (changed(refused=[{"index": 1}]), "refused: .*'code'"),
        (changed(system={"driver": "580"}), "system: .*'driver'"),
    ],
)
def test_a_bad_file_is_refused_with_the_place_and_the_reason(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(BackendError, match=complaint) as error:
        load(path)
    assert str(error.value).startswith(f"recording {path}: ")
    assert "otel-gpu record" in error.value.remedy


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"nothing\.json: No such file"):
        load(tmp_path / "nothing.json")
