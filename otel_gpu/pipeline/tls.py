"""TLS for the endpoint, as a web configuration wants it."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from otel_gpu.model import ConfigError
from otel_gpu.pipeline.web_config import KEY, TlsServer

VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
MODES = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
CURVES = {
    "CurveP256": "prime256v1",
    "CurveP384": "secp384r1",
    "CurveP521": "secp521r1",
    "X25519": "X25519",
}

_SUITE = re.compile(r"TLS_(?:(ECDHE)_)?(RSA|ECDSA)_WITH_(\w+)_(SHA\d*)")
"""A cipher suite of TLS 1.2 as Go and IANA write it."""


class Following(ssl.SSLContext):
    """A context that is another one at each handshake: that of the files as they are then.

    asyncio is given one context for as long as it listens, and asks it for nothing but `wrap_bio`.
    """

    _context: Callable[[], ssl.SSLContext]

    @classmethod
    def of(cls, context: Callable[[], ssl.SSLContext]) -> Following:
        """Make one that asks for its context."""
        following = cls(ssl.PROTOCOL_TLS_SERVER)
        following._context = context
        return following

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        """Begin a handshake."""
        return self._context().wrap_bio(*args, **options)


def context(config: TlsServer) -> ssl.SSLContext:
    """Make the context of a configuration. Raises ConfigError: a file cannot be used."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = VERSIONS[config.min_version]
    made.maximum_version = VERSIONS[config.max_version]
    if not config.prefer_server_cipher_suites:
        made.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    if config.curve_preferences:
        made.set_ecdh_curve(CURVES[config.curve_preferences[0]])
    _set_suites(made, config.cipher_suites)
    _load(made, config)
    made.verify_mode = MODES[config.client_auth_type]
    return made


def admits(config: TlsServer, certificate: dict[str, Any] | None) -> bool:
    """Whether a client may come in: where names are listed, its certificate has one of them."""
    if not config.client_allowed_sans:
        return True
    names = {name for _, name in (certificate or {}).get("subjectAltName", ())}
    return not names.isdisjoint(config.client_allowed_sans)


def _load(made: ssl.SSLContext, config: TlsServer) -> None:
    try:
        with _files(config) as (certificate, key):
            # With a pass phrase: or OpenSSL would ask for it on the terminal, for ever.
            made.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:
        where = f"{config.cert_file or 'cert'}, {config.key_file or 'key'}"
        raise _refused("cert_file, key_file", where, error) from error
    try:
        if config.client_ca or config.client_ca_file:
            made.load_verify_locations(config.client_ca_file, cadata=config.client_ca or None)
    except (OSError, ValueError) as error:
        raise _refused("client_ca_file", config.client_ca_file, error) from error


@contextmanager
def _files(config: TlsServer) -> Iterator[tuple[Path, Path]]:
    """Give the files of certificate and key. What stands in the configuration is written to one.

    OpenSSL reads a key from a file only. Where both are files nothing is written: an agent's root
    may be read-only.
    """
    if config.cert_file and config.key_file:
        yield config.cert_file, config.key_file
        return
    with TemporaryDirectory(prefix="otel-gpu-") as folder:
        yield (
            config.cert_file or _written(Path(folder) / "cert", config.cert),
            config.key_file or _written(Path(folder) / "key", config.key),
        )


def _written(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text, encoding="ascii", errors="replace")
    return path


def _set_suites(made: ssl.SSLContext, suites: tuple[str, ...]) -> None:
    """Choose among the suites of TLS 1.2; those of 1.3 are not a matter of choice, as in Go."""
    names = [name for name in map(_openssl_name, suites) if name]
    if not names:
        return
    try:
        made.set_ciphers(":".join(names))
    except ssl.SSLError as error:
        raise _refused("cipher_suites", ", ".join(suites), error) from error


def _openssl_name(suite: str) -> str:
    """Give OpenSSL's name of a suite: "" of one of TLS 1.3. Raises ConfigError."""
    match = _SUITE.fullmatch(suite)
    if match is None:
        if suite.startswith("TLS_") and "_WITH_" not in suite:
            return ""
        raise ConfigError(f"{KEY}: tls_server_config.cipher_suites: {suite} is no cipher suite")
    exchange, signature, cipher, digest = match.groups()
    cipher = cipher.replace("AES_", "AES").replace("_CBC", "").replace("_", "-")
    parts = [exchange, signature if exchange else None, cipher]
    parts += [digest] if "POLY1305" not in cipher else []
    return "-".join(part for part in parts if part)


def _refused(key: str, what: object, error: Exception) -> ConfigError:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    return ConfigError(f"{KEY}: tls_server_config.{key}: {what}: {reason}")
