"""The endpoint over TLS, with users: as its web configuration says, and says later."""

from __future__ import annotations

import base64
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import bcrypt
import pytest
import requests
import yaml

from otel_gpu.config import Prometheus
from otel_gpu.model import ConfigError
from otel_gpu.pipeline import Context
from otel_gpu.pipeline.prometheus import PrometheusReader, build
from otel_gpu.pipeline.web import Web
from tests.pipeline.box import Box
from tests.receiver import Certificate

PATIENCE_S = 10.0
HASH = bcrypt.hashpw(b"s3cret", bcrypt.gensalt(4)).decode()


@pytest.fixture
def pair(tmp_path: Path) -> Certificate:
    return Certificate.make(tmp_path, "server")


@pytest.fixture
def configured(tmp_path: Path) -> Iterator[Callable[..., PrometheusReader]]:
    """Serve with a web configuration."""
    boxes: list[Box] = []

    def make(**sections: Any) -> PrometheusReader:
        write(tmp_path, **sections)
        options = Prometheus(address="127.0.0.1:0", web_config=tmp_path / "web.yml")
        reader = build(options, Context())
        boxes.append(Box([reader]))
        return reader

    yield make
    for box in boxes:
        box.provider.shutdown(timeout_millis=2_000)


def write(folder: Path, **sections: Any) -> None:
    (folder / "web.yml").write_text(yaml.safe_dump(sections))


def secured(pair: Certificate, **more: Any) -> Mapping[str, Any]:
    return {"cert_file": str(pair.certificate), "key_file": str(pair.key), **more}


def trusting(pair: Certificate) -> ssl.SSLContext:
    """Make a client's context."""
    return ssl.create_default_context(cafile=pair.certificate)


def get(
    reader: PrometheusReader,
    server: Certificate | None = None,
    own: Certificate | None = None,
    path: str = "/metrics",
    headers: Mapping[str, str] | None = None,
) -> requests.Response:
    """Ask as a client that trusts a server's certificate, and has one of its own."""
    return requests.get(
        f"http{'s' if server else ''}://127.0.0.1:{reader.port}{path}",
        verify=str(server.certificate) if server else True,
        cert=(str(own.certificate), str(own.key)) if own else None,
        headers=headers,
        timeout=5,
    )


def basic(user: str, password: str) -> Mapping[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def until(probe: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not probe():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


Serve = Callable[..., PrometheusReader]


def test_pages_are_served_over_tls_to_who_trusts_us(
    configured: Serve, pair: Certificate, tmp_path: Path
) -> None:
    reader = configured(tls_server_config=secured(pair))

    assert get(reader, pair).status_code == 200
    with pytest.raises(requests.exceptions.SSLError):
        get(reader, Certificate.make(tmp_path, "stranger"))


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_tls_1_1_is_not_served(configured: Serve, pair: Certificate) -> None:
    reader = configured(tls_server_config=secured(pair))
    old = trusting(pair)
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")

    with (
        socket.create_connection(("127.0.0.1", reader.port)) as plain,
        pytest.raises(OSError, match=r"(?i)protocol|closed|reset|version|eof"),
    ):
        old.wrap_socket(plain, server_hostname="127.0.0.1")


def test_versions_and_suites_are_those_that_were_asked_for(
    configured: Serve, pair: Certificate
) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    reader = configured(
        tls_server_config=secured(
            pair, max_version="TLS12", cipher_suites=[suite], curve_preferences=["CurveP256"]
        )
    )
    with (
        socket.create_connection(("127.0.0.1", reader.port)) as plain,
        trusting(pair).wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        cipher = connection.cipher()

    assert cipher
    assert cipher[:2] == ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLSv1.2")


@pytest.mark.parametrize(
    ("suite", "key"), [("TLS_FAST_WITH_ROT13", "no cipher suite"), ("rot13", "no cipher suite")]
)
def test_a_suite_that_nobody_knows_is_refused(
    tmp_path: Path, pair: Certificate, suite: str, key: str
) -> None:
    write(tmp_path, tls_server_config=secured(pair, cipher_suites=[suite]))
    with pytest.raises(ConfigError, match=key):
        Web(tmp_path / "web.yml")


def test_only_clients_with_a_certificate_of_the_authority_come_in(
    configured: Serve, pair: Certificate, tmp_path: Path
) -> None:
    known, stranger = (Certificate.make(tmp_path, name) for name in ("known", "stranger"))
    reader = configured(
        tls_server_config=secured(
            pair,
            client_auth_type="RequireAndVerifyClientCert",
            client_ca_file=str(known.certificate),
        )
    )

    assert get(reader, pair, known).status_code == 200
    for own in (None, stranger):
        with pytest.raises(OSError, match=r"(?i)alert|closed|reset|certificate|eof"):
            get(reader, pair, own)


def test_only_the_names_that_are_listed_come_in(
    configured: Serve, pair: Certificate, tmp_path: Path
) -> None:
    client = Certificate.make(tmp_path, "client")  # whose name is the address 127.0.0.1

    def status(*names: str) -> int:
        reader = configured(
            tls_server_config=secured(
                pair,
                client_auth_type="RequireAndVerifyClientCert",
                client_ca_file=str(client.certificate),
                client_allowed_sans=list(names),
            )
        )
        return get(reader, pair, client).status_code

    assert status("prometheus", "127.0.0.1") == 200
    with pytest.raises(OSError, match=r"(?i)closed|reset|aborted|eof"):
        status("prometheus")


def test_a_certificate_that_is_rotated_is_served_to_the_next_client(
    configured: Serve, pair: Certificate, tmp_path: Path
) -> None:
    successor = Certificate.make(tmp_path, "successor")
    reader = configured(tls_server_config=secured(pair))
    assert get(reader, pair).status_code == 200

    pair.key.write_bytes(successor.key.read_bytes())  # and for a moment they do not match
    pair.certificate.write_bytes(successor.certificate.read_bytes())

    def is_served() -> bool:
        try:
            return get(reader, successor).status_code == 200
        except requests.exceptions.SSLError:
            return False

    until(is_served)


def test_a_file_that_is_broken_leaves_what_was_in_force(
    configured: Serve, pair: Certificate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reader = configured(tls_server_config=secured(pair), basic_auth_users={"alice": HASH})

    (tmp_path / "web.yml").write_text("basic_auth_users: {alice: s3cret}")
    until(lambda: get(reader, pair).status_code == 401 and "bcrypt" in caplog.text)

    assert get(reader, pair, headers=basic("alice", "s3cret")).status_code == 200
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "s3cret" not in said[0]
    assert said[0].endswith("what was read before is used")


def test_tls_is_not_switched_off_while_the_agent_runs(
    configured: Serve, pair: Certificate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reader = configured(tls_server_config=secured(pair))

    write(tmp_path)
    until(
        lambda: (
            get(reader, pair).status_code == 200
            and "switched on or off by a restart only" in caplog.text
        )
    )


def test_every_page_asks_for_a_user(configured: Serve) -> None:
    reader = configured(basic_auth_users={"alice": HASH})

    for path in ("/", "/metrics", "/healthz", "/debug/status", "/nowhere"):
        refused = get(reader, path=path)
        assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Basic")
    assert get(reader, headers=basic("alice", "s3cret")).status_code == 200
    assert get(reader, headers=basic("alice", "wrong")).status_code == 401


def test_a_user_who_is_added_comes_in_without_a_restart(configured: Serve, tmp_path: Path) -> None:
    reader = configured(basic_auth_users={"alice": HASH})

    write(tmp_path, basic_auth_users={"alice": HASH, "bob": HASH})

    until(lambda: get(reader, headers=basic("bob", "s3cret")).status_code == 200)


def test_headers_are_sent_with_every_answer(configured: Serve) -> None:
    reader = configured(http_server_config={"headers": {"X-Frame-Options": "deny"}})

    assert get(reader).headers["X-Frame-Options"] == "deny"
    assert get(reader, path="/nowhere").headers["X-Frame-Options"] == "deny"


@pytest.mark.parametrize("missing", ["cert_file", "client_ca_file"])
def test_a_certificate_that_cannot_be_used_stops_the_start(
    tmp_path: Path, pair: Certificate, missing: str
) -> None:
    whole = secured(
        pair, client_auth_type="VerifyClientCertIfGiven", client_ca_file=str(pair.certificate)
    )
    write(tmp_path, tls_server_config={**whole, missing: "nowhere.pem"})

    with pytest.raises(ConfigError, match=rf"{missing}.*nowhere.pem.*No such file"):
        Web(tmp_path / "web.yml")


def test_certificates_may_stand_in_the_file_itself(configured: Serve, pair: Certificate) -> None:
    texts = {"cert": pair.certificate.read_text(), "key": pair.key.read_text()}

    assert get(configured(tls_server_config=texts), pair).status_code == 200


def test_certificates_in_files_need_no_folder_to_write_to(
    tmp_path: Path, pair: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))  # as on a read-only root

    write(tmp_path, tls_server_config=secured(pair))
    assert Web(tmp_path / "web.yml").context
    write(tmp_path, tls_server_config={"cert": "x", "key": "x"})
    with pytest.raises(ConfigError, match=r"cert_file, key_file: cert, key: No such file"):
        Web(tmp_path / "web.yml")


def test_a_key_with_a_pass_phrase_is_refused_and_nobody_is_asked_for_it(
    tmp_path: Path, pair: Certificate
) -> None:
    import subprocess

    locked = tmp_path / "locked.key"
    words = ["openssl", "ec", "-aes256", "-passout", "pass:x", "-in", str(pair.key), "-out"]
    subprocess.run([*words, str(locked)], check=True, capture_output=True)
    write(tmp_path, tls_server_config={"cert_file": str(pair.certificate), "key_file": str(locked)})

    with pytest.raises(ConfigError, match=r"locked.key"):
        Web(tmp_path / "web.yml")
