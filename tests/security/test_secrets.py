"""No secret shows anywhere but at the target that it is for, whatever goes wrong there."""

from __future__ import annotations

import base64
import gzip
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import bcrypt
import pytest
import yaml

from otel_gpu.pipeline.record import read
from tests.receiver import Answer, Certificate, GrpcReceiver, HttpReceiver, Receiver
from tests.running import free_port, otel_gpu, wait_for
from tests.security.process import Running, running, written

WORD = "s3cret"
"""What every secret of these tests has in it."""

USER = f"user:pass-{WORD}"
QUERY = f"/?key=query-{WORD}"
HASH = bcrypt.hashpw(f"web-{WORD}".encode(), bcrypt.gensalt(4)).decode()
ENVIRONMENT = {
    "TOKEN": f"variable-{WORD}",
    "OTEL_EXPORTER_OTLP_HEADERS": f"x-otel=otel-{WORD}",
    "https_proxy": "",
    "no_proxy": "*",
}
FORMS = (WORD, HASH, base64.b64encode(USER.encode()).decode(), base64.b64encode(b"web:x").decode())
"""Each secret has one of these in it, as it is or as it is sent."""

HEADERS = {"authorization": "Bearer ${TOKEN}", "x-given": f"given-{WORD}", "x-wide": f" w-{WORD} "}


@contextmanager
def receiving(answers: Sequence[Answer] = ()) -> Iterator[Receiver]:
    """Receive OTLP over HTTP and gRPC, and give these answers for as long as somebody asks."""
    receiver = Receiver(statuses=deque([*answers] * 1_000))
    http, rpc = HttpReceiver(receiver), GrpcReceiver(receiver)
    try:
        yield receiver
    finally:
        http.close()
        rpc.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def leaks(text: str) -> list[str]:
    """Give the lines that tell a secret."""
    return [line for line in text.splitlines() if any(form in line for form in FORMS)]


def part(endpoint: str, **more: Any) -> dict[str, Any]:
    return {"otlp": {"endpoint": endpoint, "interval": "200ms", "headers": HEADERS, **more}}


def url(port: int, scheme: str = "http") -> str:
    return f"{scheme}://{USER}@127.0.0.1:{port}{QUERY}"


def web_config(folder: Path) -> Path:
    path = folder / "web.yml"
    path.write_text(yaml.safe_dump({"basic_auth_users": {"web": HASH}}), encoding="utf-8")
    return path


def headers_file(folder: Path) -> Path:
    path = folder / "headers"
    path.write_text(f"x-filed: filed-{WORD}\n", encoding="utf-8")
    return path


def shown(agent: Running) -> str:
    """Give every page, with a user and without, and the log."""
    known = base64.b64encode(f"web:web-{WORD}".encode()).decode()
    pages = [
        agent.page(path, headers)
        for path in ("/", "/metrics", "/healthz", "/readyz", "/debug/status", "/nowhere")
        for headers in ({}, {"authorization": f"Basic {known}"})
    ]
    assert any("hw_power_watts" in page for page in pages)
    assert any('"last_error"' in page for page in pages)
    return "\n".join([*pages, agent.log])


def tells(agent: Running, words: str) -> bool:
    return words.lower() in agent.log.lower()


def wait_for_troubles(agent: Running, troubles: Iterable[str]) -> None:
    """Wait until the log tells of pushes that failed so, and a page could be served."""
    for words in troubles:
        wait_for(partial(tells, agent, words), f"word of {words}")
    known = base64.b64encode(f"web:web-{WORD}".encode()).decode()
    wait_for(
        lambda: "hw_power_watts" in agent.page("/metrics", {"authorization": f"Basic {known}"}),
        "reading of power",
    )


# Targets that fail

ECHO = f"no such token: Bearer variable-{WORD}; given-{WORD}, filed-{WORD}, query-{WORD}".encode()
AGAIN = {"location": QUERY.replace("/", "/elsewhere/v1/metrics", 1)}
ABSOLUTE = {"location": f"https://{USER}@127.0.0.1:1{QUERY}"}
HOSTLESS = {"location": f"//{USER}@127.0.0.1:1{QUERY}"}


ANSWERS = {
    "401 Unauthorized no such token": Answer(401, {}, ECHO),
    "503 Service Unavailable no such token": Answer(503, {}, ECHO * 9),  # more than is kept
    "a redirect to /elsewhere/v1/metrics?***": Answer(307, AGAIN),
    "a redirect to https://***@127.0.0.1:1/?***": Answer(308, ABSOLUTE),
    "a redirect to //***@127.0.0.1:1/?***": Answer(301, HOSTLESS),
}


def test_targets_that_refuse_and_repeat_what_they_were_sent(tmp_path: Path) -> None:
    filed = str(headers_file(tmp_path))
    with ExitStack() as opened:
        receivers = [opened.enter_context(receiving([each])) for each in ANSWERS.values()]
        targets = [part(url(each.http_port), headers_file=filed) for each in receivers]
        guarded = {"web_config": str(web_config(tmp_path))}
        agent = opened.enter_context(running(tmp_path, targets, env=ENVIRONMENT, endpoint=guarded))
        wait_for_troubles(agent, ANSWERS)

        for receiver in receivers:
            assert receiver.headers[0]["x-filed"] == f"filed-{WORD}"
            assert receiver.headers[0]["x-given"] == f"given-{WORD}"
        assert leaks(shown(agent)) == []


def test_targets_that_are_not_reached_or_take_no_token(tmp_path: Path, receiver: Receiver) -> None:
    import grpc  # type: ignore[import-untyped]  # noqa: TID251 - the status codes; no types

    stranger = HttpReceiver(asked := Receiver(), Certificate.make(tmp_path, "stranger"))
    receiver.statuses.extend([grpc.StatusCode.UNAUTHENTICATED] * 1_000)
    rpc = {"protocol": "grpc"}
    targets = {
        "connection refused": part(url(free_port())),
        "certificate verify failed": part(url(asked.http_port, "https")),
        "wrong version number": part(url(receiver.http_port, "https")),
        "UNAUTHENTICATED": part(f"http://127.0.0.1:{receiver.grpc_port}", **rpc),
        "UNAVAILABLE": part(f"http://127.0.0.1:{free_port()}", **rpc),
    }
    guarded = {"web_config": str(web_config(tmp_path))}
    with running(tmp_path, [*targets.values()], env=ENVIRONMENT, endpoint=guarded) as agent:
        wait_for_troubles(agent, targets)

        assert leaks(shown(agent)) == []
    stranger.close()
    assert not asked.requests
    assert set(receiver.paths) == {"grpc"}


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_what_the_environment_has_for_one_target_goes_to_no_other(
    tmp_path: Path, receiver: Receiver, protocol: str
) -> None:
    port = receiver.grpc_port if protocol == "grpc" else receiver.http_port
    foreign = {
        "endpoint": f"http://127.0.0.1:{port}",
        "protocol": protocol,
        "interval": "200ms",
    }
    nobody = part(f"http://127.0.0.1:{free_port()}")
    with running(tmp_path, [{"otlp": foreign}, nobody], env=ENVIRONMENT) as agent:
        agent.wait_until_ready()
        receiver.wait(2)
        assert "OTEL_EXPORTER_OTLP_HEADERS: is not used" in agent.log

    assert not [value for sent in receiver.headers for value in sent.values() if WORD in value]


# What stays on the disk, and what a crash leaves


def test_the_queue_on_disk_has_readings_and_no_credentials(tmp_path: Path) -> None:
    queue = tmp_path / "queue"
    target = part(url(free_port()), queue={"directory": str(queue)})
    with running(tmp_path, [target], env=ENVIRONMENT) as agent:
        wait_for(lambda: len(list(queue.glob("*.batch"))) > 1, "two batches")
        agent.process.send_signal(signal.SIGTERM)
        assert agent.process.wait(20) == 0

    for path in queue.iterdir():
        content = path.read_bytes()
        if path.suffix == ".batch":
            content += gzip.decompress(read(content).body)
        assert not leaks(path.name + content.decode(errors="replace"))
        assert path.stat().st_mode & 0o077 == 0
    assert queue.stat().st_mode & 0o077 == 0


def test_a_worker_that_crashes_tells_none(tmp_path: Path) -> None:
    with running(tmp_path, [part(url(free_port()))], env=ENVIRONMENT) as agent:
        agent.wait_until_ready()
        (worker,) = agent.children()
        os.kill(worker, signal.SIGSEGV)
        wait_for(lambda: "ended with status -11" in agent.log, "word of the crash")
        wait_for(lambda: "Segmentation fault" in agent.log, "last words of the worker")

        assert leaks(agent.log) == []
        started = Path(f"/proc/{agent.process.pid}/cmdline").read_bytes()
        assert not leaks(started.decode())


# The commands

BROKEN: Mapping[str, Mapping[str, Any]] = {
    "no scheme": {"endpoint": f"{USER}@collector:4318"},
    "half a scheme": {"endpoint": f"http:/{USER}@collector:4318"},
    "a blank": {"endpoint": f"http://user:my {WORD}@collector:4318"},
    "a user over gRPC": {"endpoint": f"https://{USER}@collector:4317", "protocol": "grpc"},
    "a path over gRPC": {"endpoint": f"https://{USER}@collector/v1?k={WORD}", "protocol": "grpc"},
    "headers as text": {"headers": f"authorization=Bearer {WORD}"},
    "headers as a list": {"headers": [f"authorization: {WORD}"]},
    "a header of two lines": {"headers": {"authorization": f"{WORD}\nx: y"}},
    "a header under a header": {"headers": {"authorization": {"Bearer": WORD}}},
    "a name with a blank": {"headers": {f"Bearer {WORD}": "x"}},
    "a variable in a wrong URL": {"endpoint": "ftp://${TOKEN}@collector"},
}


@pytest.mark.parametrize("words", [("config", "check"), ("config", "show"), ("run", "--config")])
def test_faults_of_the_configuration_are_told_without_their_values(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    parts = [{"otlp": {"endpoint": "http://127.0.0.1:1", **each}} for each in BROKEN.values()]

    done = otel_gpu("--debug", *words, str(written(tmp_path, parts)), env=ENVIRONMENT)

    assert done.returncode != 0
    for place, name in enumerate(BROKEN):
        assert f"pipeline[{place}].otlp" in done.stderr, name
    assert leaks(done.stdout + done.stderr) == []


def test_a_file_of_headers_that_are_none_is_told_without_its_lines(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text(f"x-name: é-{WORD}\n", encoding="utf-8")
    config = written(tmp_path, [{"otlp": {"headers_file": str(wrong)}}])

    done = otel_gpu("--debug", "run", "--config", str(config))

    assert f"pipeline.otlp.headers_file: {wrong}, line 1: not a header" in done.stderr
    assert leaks(done.stdout + done.stderr) == []


def test_commands_show_masks(tmp_path: Path) -> None:
    target = part(url(4318), headers_file=str(headers_file(tmp_path)))
    config = written(tmp_path, [target, {"otlp": {}}])

    said = [
        otel_gpu("config", "show", str(config), env=ENVIRONMENT),
        otel_gpu("config", "check", str(config), env=ENVIRONMENT),
        otel_gpu("--debug", "once", "--config", str(config), env=ENVIRONMENT),
        otel_gpu("doctor", "--backend", "simulated", "--format", "json", env=ENVIRONMENT),
    ]

    assert [done.returncode for done in said] == [0, 0, 0, 0]
    assert "http://***@127.0.0.1:4318/?***" in said[0].stdout
    assert all(f"{name}: " in said[0].stdout for name in (*HEADERS, "x-otel"))
    for done in said:
        assert leaks(done.stdout + done.stderr) == []


def test_a_fault_of_the_web_configuration_is_told_without_its_value(tmp_path: Path) -> None:
    web = tmp_path / "web.yml"
    web.write_text(
        f"tls_server_config: {{cert: {WORD}, key: {WORD}, key_file: x}}\n"
        f"basic_auth_users: {{web: {WORD}, other: '{HASH}x'}}\n",
        encoding="utf-8",
    )
    served = {"prometheus": {"address": "127.0.0.1:0", "web_config": str(web)}}

    done = otel_gpu("--debug", "run", "--config", str(written(tmp_path, [served])))

    assert done.returncode != 0
    assert "basic_auth_users.web: is not a bcrypt hash" in done.stderr
    assert leaks(done.stdout + done.stderr) == []
