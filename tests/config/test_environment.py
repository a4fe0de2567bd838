"""OTEL_GPU_* variables set every key, and a wrong name is told with the right one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from otel_gpu.config import Key, Settings, keys, load
from otel_gpu.config.environment import from_environment
from otel_gpu.config.flow import flow

from .given import Faults, Give, Load

NO_URL = "is not a URL, such as http://collector:4318, or host:port for grpc"
SETTABLE = [key for key in keys() if key.holds != "section" and key.name != "version"]


@pytest.mark.parametrize("key", SETTABLE, ids=[key.variable for key in SETTABLE])
def test_every_key_is_a_variable_too(key: Key) -> None:
    default = "x.jsonl" if key.required else flow(key.default).strip('"')
    loaded = load(None, {key.variable: default, **_companions(key.variable)})
    assert key.variable in loaded.origins.values() or default == "{}"


def _companions(variable: str) -> dict[str, str]:
    """Give what must stand beside an option of a part that has a required one."""
    needs_path = "PIPELINE__FILE__" in variable and not variable.endswith("PATH")
    return {"OTEL_GPU_PIPELINE__FILE__PATH": "x.jsonl"} if needs_path else {}


@pytest.mark.parametrize(
    ("name", "text", "holds"),
    [
        ("SAMPLING__FAST", "2s", lambda s: s.sampling.fast == 2.0),
        ("SAMPLING__FAST", "2", lambda s: s.sampling.fast == 2.0),
        ("SAMPLING", "{fast: 2s}", lambda s: s.sampling.fast == 2.0),
        ("EVENTS__XID", "false", lambda s: s.events.xid is False),
        ("ATTRIBUTION__KUBERNETES", "false", lambda s: s.attribution.kubernetes == "off"),
        ("ATTRIBUTION__STATIC", "null", lambda s: s.attribution.static is None),
        ("BACKEND", "recorded:a #b: {c}", lambda s: s.backend == "recorded:a #b: {c}"),
        ("GPUS__INCLUDE", "all", lambda s: s.gpus.include == "all"),
        ("GPUS__INCLUDE", "[0, 0000:01:00.0]", lambda s: s.gpus.include == (0, "0000:01:00.0")),
        ("METRICS__ENABLE", "[nvidia.gpu.*]", lambda s: s.metrics.enable == ("nvidia.gpu.*",)),
        ("METRICS__TIERS", " {hw.power: 2s}", lambda s: s.metrics.tiers == {"hw.power": 2.0}),
        ("PIPELINE", "[{console: {}}]", lambda s: s.pipeline[0].name == "console"),
        (
            "PIPELINE__PROMETHEUS__ADDRESS",
            "[::]:9400",
            lambda s: s.pipeline[0].prometheus.address == "[::]:9400",
        ),
        (
            "PIPELINE__PROMETHEUS__NAMES",
            "[otel, dcgm-4.9]",
            lambda s: s.pipeline[0].prometheus.names == ("otel", "dcgm-4.9"),
        ),
        ("PIPELINE__OTLP", "{}", lambda s: [p.name for p in s.pipeline] == ["prometheus", "otlp"]),
        (
            "PIPELINE__OTLP__TLS__CA_FILE",
            "/ca.pem",
            lambda s: str(s.pipeline[1].otlp.tls.ca_file) == "/ca.pem",
        ),
    ],
)
def test_text_is_read_by_what_the_key_takes(
    name: str, text: str, holds: Callable[[Any], bool]
) -> None:
    assert holds(load(None, {f"OTEL_GPU_{name}": text}).settings)


def test_a_part_is_changed_where_the_file_has_it(loaded: Load) -> None:
    made = loaded(
        "pipeline:\n  - console:\n  - otlp:\n",
        {"OTEL_GPU_PIPELINE__OTLP__INTERVAL": "30s"},
    )
    assert [part.name for part in made.settings.pipeline] == ["console", "otlp"]
    assert made.origins["pipeline[1].otlp.interval"] == "OTEL_GPU_PIPELINE__OTLP__INTERVAL"
    assert made.origins["pipeline[1].otlp.timeout"] == "default"


def test_a_part_is_added_to_parts_that_are_commented_out(settings: Give) -> None:
    made = settings("pipeline:\n", {"OTEL_GPU_PIPELINE__CONSOLE": "{}"})
    assert [part.name for part in made.pipeline] == ["console"]


def test_of_several_parts_of_one_kind_none_is_guessed(faults: Faults) -> None:
    text = "pipeline: [otlp: {}, otlp: {}]"
    (fault,) = faults(text, {"OTEL_GPU_PIPELINE__OTLP__INTERVAL": "1s"})
    assert fault == (
        "OTEL_GPU_PIPELINE__OTLP__INTERVAL: pipeline.otlp.interval: there are 2 otlp parts; "
        "set it in the file, or set pipeline as a whole"
    )


@pytest.mark.parametrize("text", ["pipeline: 5", "pipeline: {}"])
def test_a_pipeline_that_is_none_is_the_one_fault(text: str, faults: Faults) -> None:
    environ = {"OTEL_GPU_PIPELINE__OTLP__INTERVAL": "1s", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}
    (fault,) = faults(text, environ)
    assert fault.endswith("is not a list, such as [a, b]")


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("SAMPLING__FSAT", "1s", "unknown variable; did you mean OTEL_GPU_SAMPLING__FAST?"),
        ("SAMPLING_FAST", "1s", "unknown variable; did you mean OTEL_GPU_SAMPLING__FAST?"),
        (
            "PIPELINE__0__PROMETHEUS__ADDRESS",
            ":1",
            "unknown variable; did you mean OTEL_GPU_PIPELINE__PROMETHEUS__ADDRESS?",
        ),
        ("ZZZ", "1", "unknown variable; `otel-gpu config schema` lists the keys"),
        ("SAMPLING__FAST", "50ms", "sampling.fast: 50ms is under the minimum of 100ms"),
        (
            "METRICS__ENABLE",
            "hw.*",
            "metrics.enable: hw.* is not a list, such as [a, b]",
        ),
        (
            "METRICS__ENABLE",
            "[a",
            "metrics.enable: is not YAML: expected ',' or ']', but got '<stream end>'",
        ),
        ("METRICS__TIERS", "{a: 1s, a: 2s}", "metrics.tiers: is set twice; first in line 1"),
        ("BACKEND", "a\udcffb", "is not UTF-8 text"),
        (
            "PIPELINE__OTLP__ENDPOINT",
            "collector",
            f"pipeline[1].otlp.endpoint: collector {NO_URL}",
        ),
    ],
)
def test_a_fault_names_the_variable(name: str, text: str, fault: str, faults: Faults) -> None:
    assert faults("", {f"OTEL_GPU_{name}": text}) == [f"OTEL_GPU_{name}: {fault}"]


@pytest.mark.parametrize(
    "name",
    [
        "OTEL_GPU_CONFIG",
        "OTEL_GPU_VERSION",
        "OTEL_GPU_E2E_CACHE",
        # what Kubernetes puts into pods beside Services otel-gpu and otel-gpu-metrics
        "OTEL_GPU_SERVICE_HOST",
        "OTEL_GPU_SERVICE_PORT",
        "OTEL_GPU_SERVICE_PORT_METRICS",
        "OTEL_GPU_PORT",
        "OTEL_GPU_PORT_9400_TCP",
        "OTEL_GPU_PORT_9400_TCP_ADDR",
        "OTEL_GPU_METRICS_SERVICE_HOST",
        "OTEL_GPU_METRICS_PORT_9400_TCP_PROTO",
    ],
)
def test_variables_that_are_no_settings_are_left_alone(name: str) -> None:
    assert load(None, {name: "tcp://10.0.0.1:9400"}).settings == Settings()


def test_no_key_is_mistaken_for_a_variable_of_kubernetes() -> None:
    environ = {key.variable: "x" for key in keys()}
    assert len(list(from_environment(environ))) == len(environ) - 1  # OTEL_GPU_VERSION


@pytest.mark.parametrize("name", ["OTEL_GPU_BACKEND", "OTEL_GPU_ZZZ", "OTEL_SERVICE_NAME"])
def test_an_empty_variable_says_nothing(name: str) -> None:
    assert load(None, {name: ""}).settings == Settings()


def test_references_are_for_the_file_only(settings: Give) -> None:
    assert settings("", {"OTEL_GPU_BACKEND": "recorded:${X}"}).backend == "recorded:${X}"


def test_a_variable_that_is_not_text_matters_only_where_it_is_ours() -> None:
    assert load(None, {"LS_COLORS": "\udcff"}).settings == Settings()


def test_where_the_file_has_no_section_its_fault_is_told_alone(faults: Faults) -> None:
    assert faults("sampling: 5", {"OTEL_GPU_SAMPLING__FAST": "2s"}) == [
        "agent.yaml:2: sampling: 5 is not a mapping of keys to values"
    ]
