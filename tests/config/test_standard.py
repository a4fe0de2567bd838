"""OTEL_* variables of the specification fill in what nobody else says."""

from __future__ import annotations

import pytest

from otel_gpu.config import Loaded, Otlp, Settings, load

from .given import Faults, Load

BASE = "OTEL_EXPORTER_OTLP_"
ADDED = "does not end in /v1/metrics, so that will be added"
ENDPOINT = {f"{BASE}ENDPOINT": "http://collector:4318"}


def otlp(loaded: Loaded, at: int = -1) -> Otlp:
    options = loaded.settings.pipeline[at].otlp
    assert options is not None
    return options


def names(loaded: Loaded) -> list[str]:
    return [part.name for part in loaded.settings.pipeline]


def words(loaded: Loaded) -> list[str]:
    return [str(warning) for warning in loaded.warnings]


def test_an_endpoint_adds_a_push_beside_the_pull() -> None:
    loaded = load(None, ENDPOINT)
    assert names(loaded) == ["prometheus", "otlp"]
    assert otlp(loaded).endpoint == "http://collector:4318"
    assert loaded.origins["pipeline[1].otlp.endpoint"] == f"{BASE}ENDPOINT"
    assert loaded.origins["pipeline[1].otlp.interval"] == "default"
    assert loaded.origins["pipeline[0].prometheus.address"] == "default"


def test_an_option_of_the_default_part_does_not_name_the_parts() -> None:
    loaded = load(None, {**ENDPOINT, "OTEL_GPU_PIPELINE__PROMETHEUS__ADDRESS": ":1"})
    assert names(loaded) == ["prometheus", "otlp"]


def test_options_by_our_own_variables_win() -> None:
    loaded = load(None, {**ENDPOINT, "OTEL_GPU_PIPELINE__OTLP__ENDPOINT": "http://own:1"})
    assert names(loaded) == ["prometheus", "otlp"]
    assert otlp(loaded).endpoint == "http://own:1"


@pytest.mark.parametrize(
    "environ", [{}, {"OTEL_METRIC_EXPORT_INTERVAL": "5000"}, {f"{BASE}HEADERS": "a=b"}]
)
def test_without_an_endpoint_nothing_is_added(environ: dict[str, str]) -> None:
    assert load(None, environ).settings == Settings()


def test_where_the_parts_are_named_none_is_added_and_a_warning_says_so(loaded: Load) -> None:
    made = loaded("pipeline:\n  - prometheus: {}\n", ENDPOINT)
    assert names(made) == ["prometheus"]
    (warning,) = words(made)
    assert warning.startswith(f"{BASE}ENDPOINT: is not used: the pipeline (")
    assert warning.endswith("agent.yaml:2) has no part `otlp: {}`")


@pytest.mark.parametrize(
    ("variable", "text", "option"),
    [
        ("ENDPOINT", "http://c:1", ("endpoint", "http://c:1")),
        ("PROTOCOL", "grpc", ("protocol", "grpc")),
        ("TIMEOUT", "2500", ("timeout", 2.5)),
        ("COMPRESSION", "none", ("compression", "none")),
        ("HEADERS", "api-key=a%20b, x=y%3D", ("headers", {"api-key": "a b", "x": "y="})),
    ],
)
@pytest.mark.parametrize("signal", ["", "METRICS_"])
def test_a_part_takes_what_it_leaves_out(
    variable: str, text: str, option: tuple[str, object], signal: str, loaded: Load
) -> None:
    made = loaded("pipeline: [otlp: {}]", {f"{BASE}{signal}{variable}": text})
    key, value = option
    assert getattr(otlp(made), key) == value


def test_the_variable_for_metrics_comes_before_the_general_one(loaded: Load) -> None:
    environ = {f"{BASE}TIMEOUT": "1000", f"{BASE}METRICS_TIMEOUT": "2000"}
    assert otlp(loaded("pipeline: [otlp: {}]", environ)).timeout == 2.0


def test_certificates_are_taken(loaded: Load) -> None:
    environ = {
        f"{BASE}CERTIFICATE": "ca.pem",
        f"{BASE}CLIENT_CERTIFICATE": "me.pem",
        f"{BASE}METRICS_CLIENT_KEY": "me.key",
    }
    tls = otlp(loaded("pipeline: [otlp: {endpoint: 'https://c:1'}]", environ)).tls
    assert [str(each) for each in (tls.ca_file, tls.cert_file, tls.key_file)] == [
        "ca.pem",
        "me.pem",
        "me.key",
    ]


def test_temporality_and_interval_are_taken(loaded: Load) -> None:
    environ = {
        f"{BASE}METRICS_TEMPORALITY_PREFERENCE": "DELTA",
        "OTEL_METRIC_EXPORT_INTERVAL": "30000",
    }
    part = otlp(loaded("pipeline: [otlp: {}]", environ))
    assert (part.temporality, part.interval) == ("delta", 30.0)


def test_what_the_file_says_stays(loaded: Load) -> None:
    text = "pipeline: [otlp: {endpoint: 'http://own:1', timeout: 1s, headers: {a: own}}]"
    environ = {**ENDPOINT, f"{BASE}TIMEOUT": "5000", f"{BASE}HEADERS": "a=1,b=2"}
    part = otlp(loaded(text, environ))
    assert (part.endpoint, part.timeout) == ("http://own:1", 1.0)
    assert part.headers == {"a": "own", "b": "2"}


def test_headers_from_a_file_of_their_own_are_all_there_are(loaded: Load) -> None:
    made = loaded("pipeline: [otlp: {headers_file: h}]", {f"{BASE}HEADERS": "a=1"})
    assert otlp(made).headers == {}


def test_of_several_parts_those_without_endpoint_take_it(loaded: Load) -> None:
    text = "pipeline: [otlp: {endpoint: 'http://own:1'}, otlp: {}]"
    made = loaded(text, {**ENDPOINT, f"{BASE}HEADERS": "key=secret"})
    assert otlp(made, 0).headers == {}
    assert otlp(made, 1).headers == {"key": "secret"}
    assert otlp(made, 1).endpoint == "http://collector:4318"


def test_credentials_go_to_no_endpoint_that_they_may_not_be_for(loaded: Load) -> None:
    text = "pipeline: [otlp: {endpoint: 'http://a:1'}, otlp: {endpoint: 'http://b:1'}]"
    made = loaded(text, {f"{BASE}HEADERS": "key=secret"})
    assert otlp(made, 0).headers == otlp(made, 1).headers == {}
    assert words(made) == [
        f"{BASE}HEADERS: is not used: each of the 2 otlp parts has an endpoint of its own"
    ]


@pytest.mark.parametrize(
    ("endpoint", "insecure", "url"),
    [("c:4317", "true", "http://c:4317"), ("c:4317", "false", "https://c:4317")],
)
def test_a_grpc_endpoint_without_scheme_is_as_secure_as_asked(
    endpoint: str, insecure: str, url: str, loaded: Load
) -> None:
    environ = {
        f"{BASE}ENDPOINT": endpoint,
        f"{BASE}PROTOCOL": "grpc",
        f"{BASE}INSECURE": insecure,
    }
    assert otlp(loaded("", environ)).endpoint == url


def test_an_endpoint_that_is_no_url_is_a_fault(faults: Faults) -> None:
    (fault,) = faults("", {f"{BASE}ENDPOINT": "collector"})
    assert fault.startswith(f"{BASE}ENDPOINT: pipeline[1].otlp.endpoint: collector is not a URL")


@pytest.mark.parametrize(
    ("variable", "text", "warning"),
    [
        ("PROTOCOL", "http/json", "protocol: http/json is none of http/protobuf, grpc"),
        ("TIMEOUT", "10s", "timeout: 10s is not a number of milliseconds from 100 on"),
        ("TIMEOUT", "5", "timeout: 5 is not a number of milliseconds from 100 on"),
        ("COMPRESSION", "zstd", "compression: zstd is none of gzip, none"),
        ("HEADERS", "hunter2", "headers: is not of the form name=value,name=value"),
        ("HEADERS", "=hunter2", "headers: is not of the form name=value,name=value"),
    ],
)
def test_what_cannot_be_read_is_left_out_with_a_warning(
    variable: str, text: str, warning: str
) -> None:
    loaded = load(None, {**ENDPOINT, f"{BASE}{variable}": text})
    assert words(loaded) == [f"{BASE}{variable}: pipeline[1].otlp.{warning}; it is left out"]
    assert otlp(loaded) == Otlp(endpoint="http://collector:4318")


@pytest.mark.parametrize(
    ("url", "warnings"),
    [
        ("http://c:1/v1/metrics", []),
        ("http://c:1/api/v1/metrics/", []),
        (
            "http://c:1",
            [f"{BASE}METRICS_ENDPOINT: pipeline[1].otlp.endpoint: {ADDED}"],
        ),
    ],
)
def test_a_metrics_endpoint_without_its_path_is_warned_of(url: str, warnings: list[str]) -> None:
    loaded = load(None, {f"{BASE}METRICS_ENDPOINT": url})
    assert words(loaded) == warnings
    assert otlp(loaded).endpoint == url


def test_a_metrics_endpoint_over_grpc_has_no_path() -> None:
    environ = {f"{BASE}METRICS_ENDPOINT": "http://c:4317", f"{BASE}PROTOCOL": "grpc"}
    assert words(load(None, environ)) == []


def test_the_name_of_the_service_comes_before_the_attributes() -> None:
    environ = {
        "OTEL_SERVICE_NAME": "gpus",
        "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,k8s.cluster.name=east%2C1",
    }
    attributes = load(None, environ).settings.resource.attributes
    assert attributes == {"service.name": "gpus", "k8s.cluster.name": "east,1"}


def test_attributes_of_the_file_stay_and_others_are_added(loaded: Load) -> None:
    text = "resource: {attributes: {service.name: own, racks: 3}}"
    environ = {"OTEL_SERVICE_NAME": "gpus", "OTEL_RESOURCE_ATTRIBUTES": "a=b,racks=4"}
    attributes = loaded(text, environ).settings.resource.attributes
    assert attributes == {"service.name": "own", "racks": 3, "a": "b"}


def test_attributes_that_cannot_be_read_are_left_out_with_a_warning() -> None:
    loaded = load(None, {"OTEL_RESOURCE_ATTRIBUTES": "a=b,c"})
    assert loaded.settings.resource.attributes == {}
    (warning,) = words(loaded)
    assert warning == (
        "OTEL_RESOURCE_ATTRIBUTES: resource.attributes: is not of the form name=value,name=value; "
        "it is left out"
    )


def test_a_variable_that_is_not_text_is_a_fault(faults: Faults) -> None:
    assert faults("", {"OTEL_SERVICE_NAME": "\udcff"}) == ["OTEL_SERVICE_NAME: is not UTF-8 text"]
