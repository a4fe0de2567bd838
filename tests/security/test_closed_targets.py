"""What is wrong with a target's certificate, or with our files, never ends with a stranger."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from otel_gpu.config import Otlp, Tls
from otel_gpu.model import ConfigError
from otel_gpu.pipeline.outcome import Later, Outcome, Taken
from otel_gpu.pipeline.transport import Renewed, connect, files
from tests.receiver import Certificate, GrpcReceiver, HttpReceiver, Receiver
from tests.security.issuing import GARBAGE, issued, openssl

BODY = gzip.compress(ExportMetricsServiceRequest().SerializeToString())
Protocol = Literal["http/protobuf", "grpc"]
PROTOCOLS: list[Protocol] = ["http/protobuf", "grpc"]


@pytest.fixture(params=PROTOCOLS)
def target(request: pytest.FixtureRequest) -> Iterator[Callable[..., tuple[Outcome, int]]]:
    """Send once to a server with a certificate: what came of it, and how many requests it got."""
    opened: list[Any] = []

    def send(
        server_side: Certificate | None, tls: Tls, scheme: str = "https"
    ) -> tuple[Outcome, int]:
        receiver = Receiver()
        kind = GrpcReceiver if request.param == "grpc" else HttpReceiver
        opened.append(kind(receiver, server_side))
        port = receiver.grpc_port if request.param == "grpc" else receiver.http_port
        transport = connect(
            Otlp(
                endpoint=f"{scheme}://127.0.0.1:{port}",
                protocol=request.param,
                timeout=2.0,
                tls=tls,
            )
        )
        outcome = transport.send(BODY)
        transport.close()
        return outcome, len(receiver.requests)

    yield send
    for each in opened:
        each.close()


Send = Callable[..., tuple[Outcome, int]]


@pytest.mark.parametrize(
    "server", ["of the past", "for another host", "a stranger's", "that speaks no TLS"]
)
def test_nothing_is_sent_to_a_server(tmp_path: Path, target: Send, server: str) -> None:
    right = issued(tmp_path, "right")
    own = {"cert_file": right.certificate, "key_file": right.key}
    certificate = None
    if server == "of the past":
        certificate = issued(tmp_path, "late", outdated=True)
    elif server == "for another host":
        certificate = issued(tmp_path, "elsewhere", host="DNS:collector.example")
    elif server == "a stranger's":
        certificate = issued(tmp_path, "stranger")
    trusted = certificate if certificate and server != "a stranger's" else right

    outcome, requests_got = target(certificate, Tls(ca_file=trusted.certificate, **own))

    assert isinstance(outcome, Later)
    assert requests_got == 0


@pytest.mark.parametrize("content", ["", GARBAGE, "no PEM"])
@pytest.mark.parametrize("key", ["ca_file", "cert_file", "key_file"])
def test_a_file_that_is_no_certificate_trusts_nobody(
    tmp_path: Path, target: Send, key: str, content: str
) -> None:
    pair = issued(tmp_path, "pair")
    named = {"ca_file": pair.certificate, "cert_file": pair.certificate, "key_file": pair.key}
    assert target(pair, Tls(**named)) == (Taken(), 1)
    spoilt_file = tmp_path / "spoilt"
    spoilt_file.write_text(content)

    with pytest.raises(ConfigError, match=rf"^pipeline\.otlp\.tls\..*{key}.*: .*spoilt"):
        target(pair, Tls(**{**named, key: spoilt_file}))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_key_of_another_certificate_or_with_a_pass_phrase_is_refused(
    tmp_path: Path, protocol: Protocol
) -> None:
    pair, other = (Certificate.make(tmp_path, name) for name in ("pair", "other"))
    locked = tmp_path / "locked.key"
    words = ("ec", "-aes256", "-passout", "pass:s3cret", "-in", str(pair.key))
    openssl(*words, "-out", str(locked))

    for key in (other.key, locked):
        options = Otlp(
            endpoint="https://127.0.0.1:1",
            protocol=protocol,
            tls=Tls(cert_file=pair.certificate, key_file=key),
        )
        with pytest.raises(ConfigError, match=rf"tls\.cert_file, key_file: .*{key}: "):
            connect(options)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_files_that_are_spoilt_while_it_runs_leave_those_that_were_read(
    tmp_path: Path, protocol: Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    pair = issued(tmp_path, "pair")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(pair.certificate.read_bytes())
    receiver = Receiver()
    server = (GrpcReceiver if protocol == "grpc" else HttpReceiver)(receiver, pair)
    port = receiver.grpc_port if protocol == "grpc" else receiver.http_port
    options = Otlp(
        endpoint=f"https://127.0.0.1:{port}",
        protocol=protocol,
        timeout=2.0,
        tls=Tls(ca_file=trusted, cert_file=pair.certificate, key_file=pair.key),
    )
    sender = Renewed(lambda: connect(options), files(options))
    assert sender.send(BODY) == Taken()

    trusted.write_text(GARBAGE)
    outcome = sender.send(BODY)
    sender.close()
    server.close()

    assert outcome == Taken() or isinstance(outcome, Later)
    assert f"pipeline.otlp.tls.ca_file: {trusted}" in caplog.text


SENDING = """
import sys
from otel_gpu.config import Otlp, Tls
from otel_gpu.pipeline.transport import connect
protocol, port = sys.argv[1:]
options = Otlp(endpoint=f"https://127.0.0.1:{port}", protocol=protocol, timeout=2.0)
print(type(connect(options).send(bytes.fromhex("%s"))).__name__)
"""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_authorities_that_the_environment_has_for_another_target_are_not_trusted(
    tmp_path: Path, protocol: Protocol
) -> None:
    pair = issued(tmp_path, "pair")
    meant = {
        "OTEL_EXPORTER_OTLP_CERTIFICATE": str(pair.certificate),
        "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE": str(pair.certificate),
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": str(pair.certificate),
        "OTEL_EXPORTER_OTLP_CLIENT_KEY": str(pair.key),
        "OTEL_EXPORTER_OTLP_INSECURE": "true",
        "OTEL_EXPORTER_OTLP_METRICS_INSECURE": "true",
        "no_proxy": "*",
    }
    receiver = Receiver()
    server = (GrpcReceiver if protocol == "grpc" else HttpReceiver)(receiver, pair)
    port = receiver.grpc_port if protocol == "grpc" else receiver.http_port

    done = subprocess.run(
        [sys.executable, "-c", SENDING % BODY.hex(), protocol, str(port)],
        env={**os.environ, **meant},
        capture_output=True,
        text=True,
        check=True,
    )
    server.close()

    assert done.stdout == "Later\n"
    assert receiver.requests == []
