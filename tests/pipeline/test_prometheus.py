"""The endpoint over real HTTP: what each path answers, and that scrapes say what was collected."""

from __future__ import annotations

import gzip
import http.client
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opentelemetry.metrics import CallbackOptions, Observation
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families as text_families

from otel_gpu.config import Otlp, Prometheus
from otel_gpu.model import Attributes, ConfigError, Device, Kind, Snapshot
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.exposition import Format
from otel_gpu.pipeline.naming import family, label_name
from otel_gpu.pipeline.otlp import build as build_otlp
from otel_gpu.pipeline.prometheus import PrometheusReader, build
from otel_gpu.provider import MeterProvider
from tests.pipeline.box import NODE_RESOURCE, Box
from tests.receiver import HttpReceiver, Receiver, metrics, points, value


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(port: int, path: str, method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        connection.request(method, path, headers=named)
        response = connection.getresponse()
        found = {name.lower(): text for name, text in response.getheaders()}
        return Answer(response.status, found, response.read())
    finally:
        connection.close()


class Agent:
    """What the context offers, and what the endpoint made of it."""

    def __init__(self, **options: Any) -> None:
        self.healthy: str | None
        self.ready: str | None
        self.fresh: str | None
        self.snapshot: Snapshot
        self.status: Callable[[], Mapping[str, Any]]
        self.recorded: list[tuple[str, float, Attributes]] = []
        context = Context(
            version="1.2.3",
            snapshot=lambda: self.snapshot,
            resource=lambda: NODE_RESOURCE,
            status=lambda: self.status(),  # noqa: PLW0108 - the test may replace it later
            healthy=lambda: self.healthy,
            ready=lambda: self.ready,
            fresh=lambda: self.fresh,
            record=lambda *what: self.recorded.append(what),
        )
        self.reader = build(Prometheus(**{"address": "127.0.0.1:0", **options}), context)
        self.box = Box([self.reader])
        self.power = tuple(self.box.power)
        self.begin()

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        return ask(self.reader.port, path, method, **headers)

    def begin(self) -> None:
        """Be as if nothing had happened."""
        self.healthy = self.ready = self.fresh = None
        self.snapshot = Snapshot()
        self.status = lambda: {"gpus": {"GPU-0": "ok"}}
        self.recorded.clear()
        self.box.power[:] = self.power


@pytest.fixture(scope="module")
def served() -> Iterator[Agent]:
    agent = Agent()
    yield agent
    agent.box.provider.shutdown(timeout_millis=2_000)


@pytest.fixture
def agent(served: Agent) -> Agent:
    """Share one server: each takes a fifth of a second to stop."""
    served.begin()
    return served


def families(answer: Answer) -> dict[str, Metric]:
    body = answer.body
    if answer.headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    openmetrics = answer.headers["content-type"] == Format.OPENMETRICS.value
    parse = openmetrics_families if openmetrics else text_families
    return {family.name: family for family in parse(body.decode())}


# /metrics


@pytest.mark.parametrize("accept", ["*/*", "application/openmetrics-text;version=1.0.0"])
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_scrape_gives_what_is_collected_now(agent: Agent, accept: str, encoding: str) -> None:
    answer = agent.ask("/metrics", accept=accept, accept_encoding=encoding)

    assert answer.status == 200
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert (answer.headers.get("content-encoding") == "gzip") is (encoding == "gzip")
    power = families(answer)["hw_power_watts"].samples
    assert {sample.labels["hw_id"]: sample.value for sample in power} == {
        "GPU-0": 412.5,
        "GPU-1": 71.0,
    }
    assert "server" not in answer.headers
    ((name, seconds, attributes),) = agent.recorded
    assert (name, attributes) == ("otel_gpu.scrape.duration", ())
    assert 0 < seconds < 10


def test_a_series_that_vanished_is_gone_from_the_next_scrape(agent: Agent) -> None:
    assert len(families(agent.ask("/metrics"))["hw_power_watts"].samples) == 2
    del agent.box.power[0]
    agent.snapshot = Snapshot()
    (sample,) = families(agent.ask("/metrics"))["hw_power_watts"].samples
    assert sample.labels["hw_id"] == "GPU-1"


def test_a_scrape_can_be_of_chosen_names(agent: Agent) -> None:
    answer = agent.ask("/metrics?name%5B%5D=hw_status&name[]=hw_energy_joules_total")
    assert set(families(answer)) == {"hw_status", "hw_energy_joules"}


def test_pull_and_push_give_the_same_values_of_one_reading(agent: Agent) -> None:
    receiver = Receiver()
    server = HttpReceiver(receiver)
    push = build_otlp(
        Otlp(endpoint=f"http://127.0.0.1:{receiver.http_port}", interval=60), Context()
    )
    agent.box.provider.add_metric_reader(push)

    assert push.force_flush()
    pulled = families(agent.ask("/metrics"))

    pushed = {}
    for _, metric in metrics(receiver.requests[-1]):
        if metric.HasField("histogram"):
            continue
        kind = Kind.GAUGE if metric.HasField("gauge") else Kind.UPDOWNCOUNTER
        kind = Kind.COUNTER if metric.sum.is_monotonic else kind
        for point in points(metric):
            labels = {label_name(kv.key): kv.value.string_value for kv in point.attributes}
            key = (family(metric.name, metric.unit, kind).name, frozenset(labels.items()))
            pushed[key] = value(point)
    assert pushed == {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for one in pulled.values()
        if one.type != "histogram" and one.name != "target_info"
        for sample in one.samples
    }
    agent.box.provider.remove_metric_reader(push)
    server.close()


def test_scrapes_at_the_same_time_share_a_collection() -> None:
    agent = Agent()
    collections = []
    gate = threading.Event()

    def callback(_options: CallbackOptions) -> list[Observation]:
        collections.append(threading.current_thread().name)
        assert gate.wait(10)
        return [Observation(1)]

    agent.box.provider.get_meter("m").create_observable_gauge("slow", [callback])
    with ThreadPoolExecutor(4) as clients:
        answers = [clients.submit(agent.ask, "/metrics") for _ in range(4)]
        deadline_s = time.monotonic() + 10
        while agent.reader._scrapes._under_way < 4:
            assert time.monotonic() < deadline_s
            time.sleep(0.005)
        assert agent.ask("/healthz").status == 200  # the loop is free meanwhile
        gate.set()
        assert {answer.result().status for answer in answers} == {200}
    assert len(collections) == 1
    assert collections[0].startswith("otel-gpu-scrape")
    agent.box.provider.shutdown()


def test_more_scrapes_than_are_allowed_are_told_to_come_back() -> None:
    agent = Agent(max_scrapes=1)
    gate, entered = threading.Event(), threading.Event()

    def callback(_options: CallbackOptions) -> list[Observation]:
        entered.set()
        assert gate.wait(10)
        return [Observation(1)]

    agent.box.provider.get_meter("m").create_observable_gauge("slow", [callback])
    with ThreadPoolExecutor(1) as clients:
        first = clients.submit(agent.ask, "/metrics")
        assert entered.wait(10)
        refused = agent.ask("/metrics")
        gate.set()
        assert first.result().status == 200

    assert (refused.status, refused.text) == (503, "too many scrapes at once\n")
    assert refused.headers["retry-after"] == "1"
    assert agent.ask("/metrics").status == 200
    agent.box.provider.shutdown()


def test_before_a_provider_knows_the_reader_there_is_nothing_to_scrape() -> None:
    reader = PrometheusReader(Prometheus(address="127.0.0.1:0"), Context())

    answer = ask(reader.port, "/metrics")

    assert (answer.status, answer.text) == (503, "nothing is collected yet\n")
    reader.shutdown()


def test_a_scrape_that_finds_no_series_says_whose_page_it_is() -> None:
    reader = PrometheusReader(
        Prometheus(address="127.0.0.1:0"), Context(resource=lambda: NODE_RESOURCE)
    )
    provider = MeterProvider([reader], shutdown_on_exit=False)
    assert set(families(ask(reader.port, "/metrics"))) == {"target_info"}
    provider.shutdown()


# The other paths


def test_a_probe_is_answered_with_the_reason(agent: Agent) -> None:
    assert (agent.ask("/healthz").status, agent.ask("/readyz").status) == (200, 200)
    assert agent.ask("/readyz?fresh=1").text == "ok\n"

    agent.fresh = "no answer from GPU-0"
    assert agent.ask("/readyz").status == 200
    assert agent.ask("/readyz?fresh=1")[::2] == (503, b"no answer from GPU-0\n")
    agent.ready = "the first sweep is not done"
    assert agent.ask("/readyz?fresh=1")[::2] == (503, b"the first sweep is not done\n")
    agent.healthy = "the sampler has not moved for 31 s"
    assert agent.ask("/healthz")[::2] == (503, b"the sampler has not moved for 31 s\n")


def test_the_status_is_json(agent: Agent, tmp_path: Path) -> None:
    agent.status = lambda: {"gpus": {"GPU-0": "ok"}, "file": tmp_path}

    answer = agent.ask("/debug/status")

    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.body) == {"gpus": {"GPU-0": "ok"}, "file": str(tmp_path)}


def test_what_fails_is_one_answer_and_the_log_has_the_rest(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Mapping[str, Any]:
        raise KeyError("gpus")

    agent.status = broken

    answer = agent.ask("/debug/status")

    assert (answer.status, answer.text) == (500, "this failed, and the agent's log says why\n")
    assert "KeyError: 'gpus'" in caplog.text
    caplog.clear()
    assert agent.ask("/metrics").status == 200


def test_the_front_page_shows_the_gpus_with_what_is_published_of_them(agent: Agent) -> None:
    devices = [
        Device(uuid="GPU-0", index=0, minor=0, model="NVIDIA H200 <script>"),
        Device(uuid="GPU-9", index=1, minor=3, model="NVIDIA H200"),
    ]
    agent.snapshot = Snapshot(
        devices={device.uuid: device for device in devices}, trouble="the driver & its library"
    )

    answer = agent.ask("/")

    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    for path in ("/metrics", "/healthz", "/readyz", "/debug/status"):
        assert f'<a href="{path}">' in answer.text
    row = "<td>nvidia0<td>NVIDIA H200 &lt;script&gt;<td>GPU-0<td>87%<td>40.0 GiB<td>412 W<td><td>ok"
    assert row in answer.text
    assert "<td>nvidia3 (no readings)<td>NVIDIA H200<td>GPU-9<td><td>" in answer.text
    assert "<p>the driver &amp; its library" in answer.text
    assert "<script>" not in answer.text


def test_the_front_page_says_when_there_is_no_gpu(agent: Agent) -> None:
    assert "No GPU has been seen." in agent.ask("/").text


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/", "/debug/status"])
def test_a_head_has_the_headers_of_a_get(agent: Agent, path: str) -> None:
    get, head = agent.ask(path), agent.ask(path, "HEAD")
    assert (head.status, head.body) == (get.status, b"")
    assert head.headers["content-type"] == get.headers["content-type"]
    if path != "/metrics":
        assert head.headers["content-length"] == get.headers["content-length"]


def test_an_unknown_path_is_answered_with_the_known_ones(agent: Agent) -> None:
    answer = agent.ask("/metrics/")
    assert (answer.status, answer.text) == (
        404,
        "not here. There is: / /metrics /healthz /readyz /debug/status\n",
    )


def test_nothing_can_be_written(agent: Agent) -> None:
    answer = agent.ask("/metrics", "POST")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


# Beginning and end


def test_two_on_one_port_is_an_error_that_names_the_key(agent: Agent) -> None:
    with pytest.raises(ConfigError, match=r"^pipeline.prometheus.address: .* the port is taken"):
        Agent(address=f"127.0.0.1:{agent.reader.port}")


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"names": ("otel", "dcgm-4.8.2")}, "names"),
        ({"counters_file": "default.csv"}, "names"),
        ({"web_config": "nowhere.yml"}, "web_config"),
    ],
)
def test_what_cannot_be_done_is_refused_and_not_ignored(
    options: Mapping[str, Any], key: str
) -> None:
    with pytest.raises(ConfigError, match=f"^pipeline.prometheus.{key}: "):
        build(Prometheus(address="127.0.0.1:0", **options), Context())


def test_it_ends_in_time_with_clients_connected_and_says_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    agent = Agent()
    port = agent.reader.port
    assert agent.ask("/metrics").status == 200
    with socket.create_connection(("127.0.0.1", port)) as idle:
        idle.sendall(b"GET /metrics HTTP/1.1\r\n")  # and no more
        began_s = time.monotonic()
        agent.box.provider.shutdown()
        assert time.monotonic() - began_s < 2
    with pytest.raises(ConnectionRefusedError):
        ask(port, "/metrics")
    talkers = ("uvicorn", "asyncio", "concurrent", "otel_gpu.pipeline.app")
    said = [record for record in caplog.records if record.name.startswith(talkers)]
    assert not [record for record in said if record.levelno >= logging.INFO]
