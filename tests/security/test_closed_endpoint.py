"""What is wrong with the endpoint's certificate, key or authority never ends in plain HTTP."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from otel_gpu.config import Prometheus
from otel_gpu.model import ConfigError
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.prometheus import PrometheusReader, build
from tests.pipeline.box import Box
from tests.receiver import Certificate
from tests.running import free_port, otel_gpu, wait_for
from tests.security.issuing import GARBAGE, issued
from tests.security.process import written


def secured(pair: Certificate, **more: Any) -> dict[str, Any]:
    return {"cert_file": str(pair.certificate), "key_file": str(pair.key), **more}


def spoilt(folder: Path, name: str) -> dict[str, Any] | None:
    """Give the `tls_server_config` of an endpoint that cannot be had."""
    pair, other = (Certificate.make(folder, each) for each in ("pair", "other"))
    garbage, empty = folder / "garbage.pem", folder / "empty.pem"
    garbage.write_text(GARBAGE)
    empty.write_text("")
    verified = {"client_auth_type": "RequireAndVerifyClientCert"}
    cases: dict[str, dict[str, Any] | None] = {
        "no such certificate": secured(pair, cert_file="nowhere.pem"),
        "no such key": secured(pair, key_file="nowhere.key"),
        "a certificate that is none": secured(pair, cert_file=str(garbage)),
        "an empty certificate": secured(pair, cert_file=str(empty)),
        "an empty key": secured(pair, key_file=str(empty)),
        "another certificate's key": secured(pair, key_file=str(other.key)),
        "a folder": secured(pair, key_file=str(folder)),
        "no such authority": secured(pair, **verified, client_ca_file="nowhere.pem"),
        "an authority that is none": secured(pair, **verified, client_ca_file=str(garbage)),
        "an empty authority": secured(pair, **verified, client_ca_file=str(empty)),
        "clients verified by nobody": secured(pair, **verified),
        "no certificate": {"key_file": str(pair.key)},
        "nothing": {},
        "only comments": None,
    }
    return cases[name]


SPOILT = [
    "no such certificate",
    "no such key",
    "a certificate that is none",
    "an empty certificate",
    "an empty key",
    "another certificate's key",
    "a folder",
    "no such authority",
    "an authority that is none",
    "an empty authority",
    "clients verified by nobody",
    "no certificate",
    "nothing",
    "only comments",
]


@pytest.mark.parametrize("name", SPOILT)
def test_an_endpoint_whose_tls_cannot_be_had_is_not_opened(tmp_path: Path, name: str) -> None:
    port = free_port()
    web = tmp_path / "web.yml"
    web.write_text(yaml.safe_dump({"tls_server_config": spoilt(tmp_path, name)}))

    with pytest.raises(ConfigError, match=r"^pipeline\.prometheus\.web_config: .*"):
        build(Prometheus(address=f"127.0.0.1:{port}", web_config=web), Context())

    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        pass


def test_an_agent_whose_tls_cannot_be_had_does_not_start(tmp_path: Path) -> None:
    web = tmp_path / "web.yml"
    web.write_text(yaml.safe_dump({"tls_server_config": spoilt(tmp_path, "no such key")}))
    served = {"prometheus": {"address": "127.0.0.1:0", "web_config": str(web)}}

    done = otel_gpu("run", "--config", str(written(tmp_path, [served])))

    assert done.returncode == 2
    assert "nowhere.key: No such file or directory" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read")
def test_a_key_that_may_not_be_read_is_named_and_nothing_is_opened(tmp_path: Path) -> None:
    web = tmp_path / "web.yml"
    pair = Certificate.make(tmp_path, "pair")
    pair.key.chmod(0o000)
    web.write_text(yaml.safe_dump({"tls_server_config": secured(pair)}))
    # Its effective user changes after it has loaded everything: where that is may be shut to it.
    script = (
        "import os; from pathlib import Path; from otel_gpu.pipeline.web import Web\n"
        "os.setgroups([]); os.setegid(65534); os.seteuid(65534)\n"
        f"Web(Path({str(web)!r}))\n"
    )
    opened = [one for one in (tmp_path, *tmp_path.parents) if not one.stat().st_mode & 0o001]
    before = {one: one.stat().st_mode for one in opened}
    for one in opened:
        one.chmod(before[one] | 0o001)
    try:
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False
        )
    finally:
        for one in opened:
            one.chmod(before[one])

    assert done.returncode != 0
    assert f"{pair.key}: Permission denied" in done.stderr


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[PrometheusReader, Certificate]]:
    """An endpoint over TLS that takes clients with a certificate of an authority only."""
    pair = Certificate.make(tmp_path, "server")
    authority = Certificate.make(tmp_path, "authority")
    (tmp_path / "web.yml").write_text(
        yaml.safe_dump(
            {
                "tls_server_config": secured(
                    pair,
                    client_auth_type="RequireAndVerifyClientCert",
                    client_ca_file=str(authority.certificate),
                )
            }
        )
    )
    options = Prometheus(address="127.0.0.1:0", web_config=tmp_path / "web.yml")
    reader = build(options, Context())
    box = Box([reader])
    yield reader, pair
    box.provider.shutdown(timeout_millis=2_000)


def status(reader: PrometheusReader, pair: Certificate, own: Certificate | None) -> int:
    """Ask for the page with a certificate of ours; 0: one was not let in."""
    try:
        return requests.get(
            f"https://127.0.0.1:{reader.port}/metrics",
            verify=str(pair.certificate),
            cert=(str(own.certificate), str(own.key)) if own else None,
            timeout=5,
        ).status_code
    except OSError:
        return 0


def plain(reader: PrometheusReader) -> bytes:
    """Ask without TLS; give what comes back."""
    with socket.create_connection(("127.0.0.1", reader.port), 5) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nhost: here\r\n\r\n")
        try:
            return connection.recv(100)
        except OSError:
            return b""


@pytest.mark.parametrize("change", ["garbage", "gone", "empty", "TLS left out", "no file at all"])
def test_files_that_are_spoilt_while_it_runs_open_nothing(
    tmp_path: Path,
    served: tuple[PrometheusReader, Certificate],
    caplog: pytest.LogCaptureFixture,
    change: str,
) -> None:
    reader, pair = served
    trusted = Certificate(tmp_path / "trusted.pem", pair.key)
    trusted.certificate.write_bytes(pair.certificate.read_bytes())
    known = Certificate(tmp_path / "authority.pem", tmp_path / "authority.key")
    assert status(reader, trusted, known) == 200
    changes: dict[str, Callable[[], object]] = {
        "garbage": lambda: pair.certificate.write_text(GARBAGE),
        "gone": pair.key.unlink,
        "empty": lambda: (tmp_path / "web.yml").write_text("tls_server_config: {}"),
        "TLS left out": lambda: (tmp_path / "web.yml").write_text(""),
        "no file at all": (tmp_path / "web.yml").unlink,
    }

    changes[change]()
    wait_for(
        lambda: status(reader, trusted, known) == 200 and "was read before" in caplog.text,
        "word of the file",
    )

    assert status(reader, trusted, None) == 0
    assert b"HTTP" not in plain(reader)


def test_a_client_whose_certificate_is_of_the_past_is_not_let_in(
    tmp_path: Path, served: tuple[PrometheusReader, Certificate]
) -> None:
    reader, pair = served
    known = Certificate(tmp_path / "authority.pem", tmp_path / "authority.key")
    late = issued(tmp_path, "late", outdated=True, by=known)
    timely = issued(tmp_path, "timely", by=known)

    assert status(reader, pair, timely) == 200
    assert status(reader, pair, late) == 0
