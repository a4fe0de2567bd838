"""A configuration that changes under a running agent: taken over whole, or refused whole."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import pytest
from prometheus_client.parser import text_string_to_metric_families

from otel_gpu.reloading import Changes
from tests.receiver import HttpReceiver, Receiver, metrics
from tests.running import free_port, page, running, wait_for

BOX = "simulated:h200x8,gpus=2"
ENERGY = "hw_energy_joules_total"
RELOADS = "otel_gpu_config_reloads_total"

Series = tuple[str, frozenset[tuple[str, str]]]


class Given:
    """A configuration file, which is written anew, and the agent that follows it."""

    def __init__(self, path: Path) -> None:
        self.port = free_port()
        self.file = path / "agent.json"
        self.prometheus: dict[str, Any] = {"address": f"127.0.0.1:{self.port}"}

    def write(self, **settings: Any) -> None:
        pipeline = [{"prometheus": self.prometheus}, *settings.pop("pipeline", [])]
        document = {"version": 1, "backend": BOX, "pipeline": pipeline, **settings}
        draft = self.file.with_suffix(".new")
        draft.write_text(json.dumps(document), encoding="utf-8")
        draft.replace(self.file)

    def samples(self) -> dict[Series, float]:
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(page(self.port))
            for sample in family.samples
        }

    def reloads(self, outcome: str) -> float:
        key = RELOADS, frozenset({("otel_gpu_outcome", outcome)})
        return self.samples().get(key, 0.0)

    def wait_for_reload(self, outcome: str = "applied", count: int = 1) -> None:
        wait_for(lambda: self.reloads(outcome) >= count, f"reload that is {outcome}")


@pytest.fixture
def given(tmp_path: Path) -> Given:
    return Given(tmp_path)


@pytest.fixture
def start(given: Given) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    ended: list[Any] = []

    def begin(**settings: Any) -> subprocess.Popen[str]:
        given.write(**settings)
        agent = running("run", "--config", str(given.file))
        ended.append(agent)
        process = agent.__enter__()
        wait_for(lambda: ENERGY in page(given.port), "first sweep")
        return process

    yield begin
    for agent in ended:
        agent.__exit__(None, None, None)


class Scraping:
    """Scrapes as fast as it can, and keeps every page."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._stop = Event()
        self.pages: list[dict[Series, float]] = []
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.pages.append(self._given.samples())


def test_a_changed_file_is_taken_over_without_a_gap_in_what_did_not_change(
    given: Given, start: Callable[..., Any]
) -> None:
    start()
    with Scraping(given) as scraping:
        given.write(metrics={"enable": ["nvidia.gpu.pcie.throughput"], "disable": ["hw.fan.*"]})
        given.wait_for_reload()
        wait_for(lambda: "nvidia_gpu_pcie_throughput" in page(given.port), "new metric")
    before, after = scraping.pages[0], scraping.pages[-1]
    lasting = before.keys() & after.keys()
    assert sum(name == ENERGY for name, _ in lasting) == 2
    assert len(lasting) > 100
    for earlier, later in zip(scraping.pages, scraping.pages[1:], strict=False):
        assert lasting <= later.keys()
        fallen = {one for one in lasting if is_counter(one) and later[one] < earlier[one]}
        assert not fallen


def is_counter(series: Series) -> bool:
    return series[0].endswith(("_total", "_count", "_bucket"))


def test_what_was_taken_out_is_gone_and_comes_back(given: Given, start: Callable[..., Any]) -> None:
    start()
    given.write(metrics={"disable": ["hw.energy", "otel_gpu.sweep.*"]})
    given.wait_for_reload()
    assert not [name for name, _ in given.samples() if name == ENERGY]
    given.write()
    given.wait_for_reload(count=2)
    wait_for(lambda: ENERGY in page(given.port), "energy, at its next turn")


def test_a_gpu_that_is_left_out_is_gone_and_not_lost(
    given: Given, start: Callable[..., Any]
) -> None:
    start()
    given.write(gpus={"include": [1]})
    given.wait_for_reload()
    left = {value for name, value in given.samples().items() if name[0] == "otel_gpu_device_up"}
    assert left == {1.0}
    assert sum(name == ENERGY for name, _ in given.samples()) == 1


def test_a_bad_file_is_refused_whole_and_says_why(
    given: Given, start: Callable[..., subprocess.Popen[str]]
) -> None:
    agent = start()
    given.write(metrics={"profile": "everything"}, identity="full")
    given.wait_for_reload("refused")
    assert not is_full(given)
    status = json.loads(page(given.port, "/debug/status"))["configuration"]
    assert "metrics.profile" in status["refused"]
    assert page(given.port, "/readyz") == page(given.port, "/healthz") == "ok\n"
    given.write(identity="full")
    given.wait_for_reload()
    assert is_full(given)
    assert json.loads(page(given.port, "/debug/status"))["configuration"]["refused"] is None
    agent.send_signal(signal.SIGTERM)
    _, log = agent.communicate(timeout=20)
    assert "metrics.profile" in log
    assert "one before stays in force" in log


def is_full(given: Given) -> bool:
    """Whether points say all of their GPU, as `identity: full` has it."""
    return any(
        name == ENERGY and "hw_serial_number" in dict(labels) for name, labels in given.samples()
    )


def test_a_part_that_cannot_work_refuses_all(given: Given, start: Callable[..., Any]) -> None:
    start()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        given.write(identity="full", pipeline=[{"prometheus": {"address": address}}])
        given.wait_for_reload("refused")
    assert not is_full(given)


def test_a_backend_cannot_be_exchanged(given: Given, start: Callable[..., Any]) -> None:
    start()
    given.write(backend="simulated:t4")
    given.wait_for_reload("refused")


def test_a_file_that_is_gone_is_refused_and_comes_back(
    given: Given, start: Callable[..., Any]
) -> None:
    start()
    given.file.unlink()
    given.wait_for_reload("refused")
    given.write(identity="full")
    given.wait_for_reload()


def test_sighup_reads_it_again(given: Given, start: Callable[..., subprocess.Popen[str]]) -> None:
    agent = start()
    agent.send_signal(signal.SIGHUP)
    given.wait_for_reload("unchanged")


def test_the_links_of_a_configmap_are_followed(tmp_path: Path) -> None:
    """The kubelet writes a new directory and exchanges one link to it."""
    file = configmap(tmp_path, "one", "a: 1")
    changes = Changes(file)
    assert not changes.seen()
    configmap(tmp_path, "two", "a: 2")
    assert [changes.seen(), changes.seen(), changes.seen()] == [False, True, False]


def configmap(folder: Path, version: str, text: str) -> Path:
    (folder / version).mkdir()
    (folder / version / "agent.yaml").write_text(text, encoding="utf-8")
    (folder / "..tmp").symlink_to(version)
    (folder / "..tmp").replace(folder / "..data")
    if not (folder / "agent.yaml").is_symlink():
        (folder / "agent.yaml").symlink_to("..data/agent.yaml")
    return folder / "agent.yaml"


def test_a_file_that_is_still_being_written_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("version: 1\n", encoding="utf-8")
    changes = Changes(file)
    for step in range(1, 4):
        file.write_text("version: 1\n" + "#" * step, encoding="utf-8")
        assert not changes.seen()
    assert changes.seen()


def test_the_endpoint_takes_users_without_refusing_a_connection(
    given: Given, start: Callable[..., Any], tmp_path: Path
) -> None:
    start()
    web = tmp_path / "web.yml"
    web.write_text("http_server_config: {headers: {X-Frame-Options: deny}}\n", encoding="utf-8")
    with Scraping(given) as scraping:
        given.prometheus["web_config"] = str(web)
        given.write()
        given.wait_for_reload()
    assert all(scraping.pages)  # an empty one is a connection that was refused, or a 503


def test_what_waits_for_a_collector_goes_to_its_new_address(
    given: Given, start: Callable[..., Any]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        dead = listener.getsockname()[1]
    start(pipeline=[{"otlp": {"endpoint": f"http://127.0.0.1:{dead}", "interval": "500ms"}}])
    wait_for(lambda: batches(given) >= 3, "queue")
    receiver = Receiver()
    http = HttpReceiver(receiver)
    try:
        endpoint = f"http://127.0.0.1:{receiver.http_port}"
        given.write(pipeline=[{"otlp": {"endpoint": endpoint, "interval": "1h"}}])
        requests = receiver.wait(3)
    finally:
        http.close()
    assert all(list(metrics(request)) for request in requests)


def batches(given: Given) -> int:
    pipeline = json.loads(page(given.port, "/debug/status"))["pipeline"]
    return max((one["backlog"]["batches"] for one in pipeline.values()), default=0)


def test_nothing_is_left_open_by_many_reloads(
    given: Given, start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    agent = start()
    web = tmp_path / "web.yml"
    web.write_text("{}\n", encoding="utf-8")

    def turn(number: int) -> None:
        given.prometheus["web_config"] = str(web) if number % 2 else None
        endpoint = f"http://127.0.0.1:9/{number}"
        given.write(pipeline=[{"otlp": {"endpoint": endpoint}}])
        agent.send_signal(signal.SIGHUP)
        given.wait_for_reload(count=number)

    turn(1)
    first = threads(agent.pid)
    for number in range(2, 10):
        turn(number)
    # Not each has to be gone at once, nor were all there at first; but eight turns leave no eight.
    wait_for(lambda: threads(agent.pid) <= first + 3, "end of what was before")
    assert len(list(Path(f"/proc/{agent.pid}/fd").iterdir())) < 60


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))
