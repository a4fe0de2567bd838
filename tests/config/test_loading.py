"""Flag, OTEL_GPU_*, file, OTEL_* and default are laid over one another, in this order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from otel_gpu.config import Otlp, Part, Prometheus, Settings, check, load, show
from otel_gpu.config.document import parse
from otel_gpu.config.keys import keys

from .given import Faults, Give, Load, Write


def test_without_anything_the_settings_are_the_defaults() -> None:
    loaded = load()
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}
    assert loaded.warnings == ()


def test_the_defaults_are_what_the_contract_says() -> None:
    settings = Settings()
    assert settings.backend == "nvml"
    sampling = settings.sampling
    assert (sampling.fast, sampling.default, sampling.slow) == (1.0, 5.0, 60.0)
    assert sampling.power_window == 15.0
    assert (settings.metrics.profile, settings.metrics.enable) == ("standard", ())
    assert (settings.budgets.processes_per_gpu, settings.budgets.series) == (20, 20_000)
    assert (settings.gpus.include, settings.gpus.mig) == ("all", "both")
    assert (settings.identity, settings.resource.scope) == ("minimal", "gpu")
    assert settings.attribution.kubernetes == "auto"
    assert str(settings.attribution.pod_resources_socket) == (
        "/var/lib/kubelet/pod-resources/kubelet.sock"
    )
    assert (settings.events.xid, settings.events.kernel_log) == (True, "auto")
    assert [part.name for part in settings.pipeline] == ["prometheus"]
    assert (settings.telemetry.semconv, settings.telemetry.log_level) == ("1.44", "info")


def test_the_defaults_of_the_parts_are_what_the_contract_says() -> None:
    prometheus, otlp = Prometheus(), Otlp()
    assert (prometheus.address, prometheus.names) == ("127.0.0.1:9400", ("otel",))
    assert (prometheus.created, prometheus.max_scrapes) == (False, 16)
    assert (otlp.protocol, otlp.interval, otlp.timeout) == ("http/protobuf", 15.0, 10.0)
    assert (otlp.compression, otlp.temporality) == ("gzip", "cumulative")
    assert (otlp.queue.directory, otlp.queue.max_bytes) == (None, 64 << 20)


FLAG = {"resource__attributes": {"a": "flag"}}
VARIABLE = {"OTEL_GPU_RESOURCE__ATTRIBUTES": "{a: variable, b: variable}"}
FILE = "resource: {attributes: {a: file, b: file, c: file}}"
STANDARD = {"OTEL_RESOURCE_ATTRIBUTES": "a=standard,b=standard,c=standard,d=standard"}


def test_each_layer_gives_way_to_the_one_before_it(loaded: Load) -> None:
    given_by = loaded(FILE, {**STANDARD, **VARIABLE}, **FLAG)
    assert given_by.settings.resource.attributes == {
        "a": "flag",
        "b": "variable",
        "c": "file",
        "d": "standard",
    }
    path = "resource.attributes."
    assert given_by.origins[f"{path}a"] == "flag"
    assert given_by.origins[f"{path}b"] == "OTEL_GPU_RESOURCE__ATTRIBUTES"
    assert given_by.origins[f"{path}c"].endswith("agent.yaml:2")
    assert given_by.origins[f"{path}d"] == "OTEL_RESOURCE_ATTRIBUTES"
    assert given_by.origins["resource.scope"] == "default"


def test_the_origin_of_a_value_is_its_own_line(loaded: Load) -> None:
    origins = loaded("sampling:\n  fast: 2s\n\n  slow: 30s\n").origins
    assert origins["sampling.fast"].endswith("agent.yaml:3")
    assert origins["sampling.default"] == "default"
    assert origins["sampling.slow"].endswith("agent.yaml:5")


def test_a_list_is_taken_from_one_place(settings: Give) -> None:
    text = "metrics: {enable: [a, b]}"
    assert settings(text).metrics.enable == ("a", "b")
    assert settings(text, {"OTEL_GPU_METRICS__ENABLE": "[c]"}).metrics.enable == ("c",)


def test_what_is_commented_out_is_the_default(settings: Give) -> None:
    assert settings("sampling:\nmetrics:\n  enable:\n  tiers:\n") == Settings()


def test_a_part_without_options_has_the_defaults(settings: Give) -> None:
    assert settings("pipeline:\n  - prometheus:\n  - console: {}\n").pipeline == (
        Part.model_validate({"prometheus": {}}),
        Part.model_validate({"console": {}}),
    )


def test_parts_have_a_name_and_options(settings: Give) -> None:
    first, second = settings("pipeline: [file: {path: a}, file: {path: b, rotate: 1KiB}]").pipeline
    assert (first.name, second.name) == ("file", "file")
    assert second.options == second.file
    assert second.file is not None
    assert (second.file.path, second.file.rotate) == (Path("b"), 1024)


@pytest.mark.parametrize(
    ("word", "value"),
    [("auto", "auto"), ("on", "on"), ("off", "off"), ("true", "on"), ("false", "off")],
)
def test_a_switch_takes_words_and_bools(word: str, value: str, settings: Give) -> None:
    assert settings(f"attribution: {{kubernetes: {word}}}").attribution.kubernetes == value


def test_gpus_are_named_as_the_driver_names_them(settings: Give) -> None:
    include = settings("gpus: {include: [0, '2', GPU-8b1f, 00000000:3B:00.0]}").gpus.include
    assert include == (0, 2, "GPU-8b1f", "0000:3b:00.0")


def test_a_version_of_conventions_may_look_like_a_number(settings: Give) -> None:
    assert settings("telemetry: {semconv: 1.44}").telemetry.semconv == "1.44"


@pytest.mark.parametrize(
    ("options", "endpoint"),
    [
        ("{}", "http://localhost:4318"),
        ("{protocol: grpc}", "http://localhost:4317"),
        ("{protocol: grpc, endpoint: 'collector:4317'}", "https://collector:4317"),
        ("{protocol: grpc, endpoint: 'http://c:4317'}", "http://c:4317"),
    ],
)
def test_an_endpoint_is_always_a_url(options: str, endpoint: str, settings: Give) -> None:
    part = settings(f"pipeline: [otlp: {options}]").pipeline[0]
    assert part.otlp is not None
    assert part.otlp.endpoint == endpoint


def test_flags_that_were_not_given_say_nothing(settings: Give) -> None:
    assert settings("identity: full", identity=None).identity == "full"


def test_flags_name_parts_of_the_pipeline(settings: Give) -> None:
    made = settings("", pipeline__prometheus__address=":1", pipeline__otlp__interval="5s")
    assert [part.name for part in made.pipeline] == ["prometheus", "otlp"]
    assert made.pipeline[0].options == Prometheus(address=":1")
    assert made.pipeline[1].options == Otlp(interval=5.0)


def test_a_whole_pipeline_by_flag_replaces_the_file_s(settings: Give) -> None:
    made = settings("pipeline: [otlp: {}]", pipeline=[{"console": {}}])
    assert [part.name for part in made.pipeline] == ["console"]


def test_what_the_caller_passed_is_not_changed(loaded: Load) -> None:
    pipeline: list[dict[str, dict[str, str]]] = [{"prometheus": {}}]
    loaded("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, pipeline=pipeline)
    loaded("", pipeline=pipeline, pipeline__prometheus__address=":1")
    assert pipeline == [{"prometheus": {}}]


def test_an_unknown_flag_is_a_fault(faults: Faults) -> None:
    assert faults("", sampling__fsat="1s") == [
        "flag: sampling.fsat: unknown key; did you mean sampling.fast?"
    ]


def test_settings_do_not_change(settings: Give) -> None:
    with pytest.raises(ValueError, match="frozen"):
        settings().backend = "simulated"


def test_a_part_of_an_installed_package_keeps_its_options(
    settings: Give, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "gpu_kafka-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: gpu-kafka\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[otel_gpu.pipeline]\nkafka = gpu_kafka:build\n")
    monkeypatch.syspath_prepend(str(package.parent))
    (part,) = settings("pipeline: [kafka: {brokers: [a, b], acks: 1}]").pipeline
    assert part.name == "kafka"
    assert part.options == {"brokers": ["a", "b"], "acks": 1}


def test_headers_are_not_in_the_repr_of_settings(settings: Give) -> None:
    assert "hunter2" not in repr(settings("pipeline: [otlp: {headers: {a: hunter2}}]"))


def test_it_imports_nothing_of_what_the_agent_serves() -> None:
    code = (
        "import sys, otel_gpu.config\n"
        "heavy = {'opentelemetry', 'pynvml', 'grpc', 'uvicorn', 'typer'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


KEYS = st.sampled_from([key.path[-1] for key in keys()]) | st.text(max_size=3)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["1s", "64MiB", "auto", "full", "${X}", ":9400", "http://c:1", "otel", "all"]),
)
TREES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=4),
    max_leaves=12,
)
QUIET = hypothesis_settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)


@QUIET
@given(content=st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
def test_any_bytes_give_settings_or_a_readable_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_bytes(b"version: 1\n" + content)
    _loads_or_refuses(path)


@QUIET
@given(tree=st.dictionaries(KEYS, TREES, max_size=5))
def test_any_values_give_settings_or_a_readable_error(
    tree: dict[str, object], write: Write
) -> None:
    _loads_or_refuses(write(_as_yaml(tree)))


@QUIET
@given(st.sampled_from([key.name for key in keys()]), TREES)
def test_any_flag_gives_settings_or_a_readable_error(name: str, value: object) -> None:
    _loads_or_refuses(None, {name: value})


def _loads_or_refuses(path: Path | None, flags: dict[str, object] | None = None) -> None:
    faults = check(path, {"X": "y"}, flags)
    for fault in faults:
        _is_readable(str(fault))
    if not faults:
        assert parse(show(load(path, {"X": "y"}, flags)), "shown").faults == []


def _is_readable(line: str) -> None:
    assert ": " in line
    assert line.isprintable()
    assert "Input should" not in line
    assert "is not possible here" not in line


def _as_yaml(tree: object) -> str:
    """Write any tree as YAML flow, with text as it is or in quotes."""
    text: str = yaml.safe_dump(tree, allow_unicode=True, default_flow_style=False)
    return text
