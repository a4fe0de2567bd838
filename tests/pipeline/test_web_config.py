"""The exporter-toolkit's file is read as it is meant, or refused with every fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_gpu.model import ConfigError
from otel_gpu.pipeline.web_config import WebConfig, read

HASH = "$2y$10$qHAFWF3SEn1BVDPsDJ7sSeIJiPU9hZ4CgMggBiTjh790Pe70c9byq"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "web.yml"


def faults(file: Path, text: str) -> list[str]:
    """Give the faults of a file, without where it is."""
    file.write_text(text)
    with pytest.raises(ConfigError) as told:
        read(file)
    lines = str(told.value).splitlines()
    start = f"pipeline.prometheus.web_config: {file}: "
    assert all(line.startswith(start) for line in lines)
    return [line.removeprefix(start) for line in lines]


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}"])
def test_an_empty_file_is_plain_http_for_everybody(file: Path, text: str) -> None:
    file.write_text(text)

    assert read(file) == WebConfig()


def test_a_whole_file_is_read_and_its_paths_are_beside_it(file: Path) -> None:
    file.write_text(f"""
tls_server_config:
  cert_file: server.crt
  key_file: /etc/keys/server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
  client_allowed_sans: [prometheus]
  min_version: TLS13
  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
  prefer_server_cipher_suites: false
  curve_preferences: [CurveP256]
http_server_config:
  http2: false
  headers: {{Strict-Transport-Security: max-age=31536000}}
basic_auth_users: {{alice: {HASH}}}
""")

    config = read(file)

    assert config.tls_server_config
    assert config.tls_server_config.cert_file == file.parent / "server.crt"
    assert config.tls_server_config.key_file == Path("/etc/keys/server.key")
    assert config.tls_server_config.client_ca_file == file.parent / "ca.crt"
    assert config.basic_auth_users == {"alice": HASH}
    assert config.http_server_config.headers == {"Strict-Transport-Security": "max-age=31536000"}


def test_secrets_do_not_show() -> None:
    config = WebConfig.model_validate(
        {
            "tls_server_config": {"cert": "CERT", "key": "KEY-s3cret"},
            "basic_auth_users": {"alice": HASH},
        }
    )
    assert "s3cret" not in repr(config)
    assert HASH not in repr(config)


TLS = "tls_server_config: {cert_file: a, key_file: b, "


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("tls_config: {}", "tls_config: Extra inputs are not permitted"),
        ("- a", "the file: Input should be a valid dictionary or instance of WebConfig"),
        ("tls_server_config: {cert_file: a}", "tls_server_config: needs cert_file and key_file"),
        (f"{TLS} cert: x}}", "tls_server_config: cert and cert_file are two ways"),
        (f"{TLS} min_version: TLS10}}", "tls_server_config.min_version: TLS10 is broken"),
        (f"{TLS} min_version: TLS13, max_version: TLS12}}", "tls_server_config: min_version TLS13"),
        (f"{TLS} client_auth_type: RequireAnyClientCert}}", "which Python's TLS cannot"),
        (f"{TLS} client_auth_type: Sometimes}}", "client_auth_type Sometimes is none of"),
        (f"{TLS} client_auth_type: VerifyClientCertIfGiven}}", "needs client_ca_file"),
        (f"{TLS} client_ca_file: c}}", "client_auth_type does not ask for clients'"),
        (f"{TLS} client_allowed_sans: [x]}}", "client_allowed_sans needs client_auth_type"),
        (f"{TLS} curve_preferences: [CurveP256, X25519]}}", "Python's TLS takes one curve"),
        (f"{TLS} curve_preferences: [P-256]}}", "tls_server_config.curve_preferences.0: "),
        ("http_server_config: {headers: {Server: x}}", "is none of Content-Security-Policy"),
        ("basic_auth_users: {alice: s3cret}", "basic_auth_users.alice: is not a bcrypt hash"),
        ("basic_auth_users: [", "is no YAML: line 1: "),
        ("basic_auth_users:\n  bob: s3cret: x", "is no YAML: line 2: mapping values"),
        ("rate_limit: {interval: 1s}", "rate_limit: Extra inputs are not permitted"),
    ],
)
def test_a_fault_says_where_it_is_and_never_what_a_password_was(
    file: Path, text: str, fault: str
) -> None:
    (said,) = faults(file, text)
    assert fault in said
    assert "s3cret" not in said


def test_all_faults_are_told_at_once(file: Path) -> None:
    assert len(faults(file, "a: 1\nb: 2\nbasic_auth_users: {c: d, e: f}")) == 4


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    with pytest.raises(ConfigError, match=rf"web_config: {file}: No such file"):
        read(file)
