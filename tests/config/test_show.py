"""The effective configuration shows each value with its origin, and no secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.config import Settings, load, show
from otel_gpu.config.document import parse
from otel_gpu.config.flow import flow
from otel_gpu.config.masks import masked, masked_url, secret

from .given import Load, Write

TEXT = """\
sampling: {fast: 2s}
metrics: {enable: ["a: b", on, "1.5"], tiers: {hw.power: 500ms}}
resource: {attributes: {team: "${TEAM:-ml}", racks: 3}}
pipeline:
  - otlp:
      endpoint: http://me:hunter2@c:4318/?key=hunter2
      headers: {authorization: Bearer hunter2}
  - console: {}
"""


def test_each_value_stands_with_who_gave_it(loaded: Load) -> None:
    environ = {"OTEL_GPU_BUDGETS__SERIES": "5", "OTEL_SERVICE_NAME": "gpus"}
    lines = show(loaded(TEXT, environ, identity="full")).splitlines()
    origins = {
        " ".join(line.split()).partition(" # ")[0]: line.rpartition("# ")[2].rpartition("/")[2]
        for line in lines
        if "# " in line
    }
    assert origins["fast: 2s"] == "agent.yaml:2"
    assert origins["default: 5s"] == "default"
    assert origins["hw.power: 500ms"] == "agent.yaml:3"
    assert origins["team: ml"] == "agent.yaml:4"
    assert origins["service.name: gpus"] == "OTEL_SERVICE_NAME"
    assert origins["series: 5"] == "OTEL_GPU_BUDGETS__SERIES"
    assert origins["identity: full"] == "flag"
    assert origins["- console: {}"] == "agent.yaml:9"


def test_secrets_are_masked(loaded: Load) -> None:
    text = show(loaded(TEXT))
    assert "hunter2" not in text
    assert 'authorization: "***"' in text
    assert 'endpoint: "http://***@c:4318/?***"' in text


def test_secrets_of_other_packages_are_masked() -> None:
    options = {"token": "x", "brokers": ["kafka://u:p@h"], "auth": {"password": ["x"], "user": "u"}}
    assert masked(("pipeline", 0, "kafka"), options) == {
        "token": "***",
        "brokers": ["kafka://***@h"],
        "auth": {"password": ["***"], "user": "u"},
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://c:4318/v1", "http://c:4318/v1"),
        ("http://u:p@c/", "http://***@c/"),
        ("http://u:p/@ss@c", "http://***@c"),
        ("http://c/?a=b&c", "http://c/?***"),
        ("mail@example.com?x", "mail@example.com?x"),
    ],
)
def test_a_url_is_masked_before_its_host_and_after_its_path(text: str, shown: str) -> None:
    assert masked_url(text) == shown


def test_files_that_hold_secrets_are_none() -> None:
    assert not secret(("pipeline", 0, "otlp", "headers_file"))
    assert not secret(("pipeline", 0, "otlp", "tls", "key_file"))
    assert secret(("pipeline", 0, "otlp", "headers", "x"))


def test_what_is_shown_can_be_loaded_again(loaded: Load, tmp_path: Path) -> None:
    text = (
        TEXT.replace("me:hunter2@", "")
        .replace("?key=hunter2", "")
        .replace("headers: {authorization: Bearer hunter2}", "timeout: 5s")
    )
    first = loaded(text)
    again = tmp_path / "again.yaml"
    again.write_text(show(first), encoding="utf-8")
    assert load(again).settings == first.settings


@pytest.mark.parametrize("text", ["$", "$5", "$$", "${X}", "$${X}", "a$$$b", "${", "$$$${X}$$"])
def test_what_looks_like_a_reference_is_shown_as_text(
    text: str, loaded: Load, tmp_path: Path
) -> None:
    attributes = {"note": text, "notes": f"{text} {text}", text: "key"}
    first = loaded("", resource__attributes=attributes)
    again = tmp_path / "again.yaml"
    again.write_text(show(first), encoding="utf-8")
    assert load(again, {"X": "expanded"}).settings.resource.attributes == attributes


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(min_size=1), below, max_size=3)
    ),
    max_leaves=8,
)


@given(PLAIN)
def test_a_value_on_one_line_is_read_as_the_same_value(value: Any) -> None:
    text = flow(value)
    assert "\n" not in text
    assert parse(text, "f").values == value


@given(st.text())
def test_readers_of_older_yaml_read_text_as_text(text: str) -> None:
    assert yaml.safe_load(flow(text)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("15s", "15s"),
        ("127.0.0.1:9400", '"127.0.0.1:9400"'),
        ("1.44", '"1.44"'),
        ("on", '"on"'),
        ("2026-01-01", '"2026-01-01"'),
        ("http://c:4318", "http://c:4318"),
        ("nvidia.gpu.*", "nvidia.gpu.*"),
        ("", '""'),
        (1, "1"),
        (True, "true"),
        (None, "null"),
        ((), "[]"),
        ({"a": ["b", 1.5]}, "{a: [b, 1.5]}"),
    ],
)
def test_values_are_quoted_only_where_they_must_be(value: object, text: str) -> None:
    assert flow(value) == text


def test_everything_is_shown(write: Write) -> None:
    text = show(load(write("")))
    assert set(yaml.safe_load(text)) == set(Settings.model_fields)
