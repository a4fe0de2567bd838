"""The web configuration file of Prometheus' exporter-toolkit, as far as Python can serve it.

https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md. What cannot be
served as the file says is refused: an endpoint that is less protected than its owner believes is
worse than none.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from otel_gpu.model import ConfigError

KEY = "pipeline.prometheus.web_config"

_BCRYPT = re.compile(r"\$2[abxy]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}")

Curve = Literal["CurveP256", "CurveP384", "CurveP521", "X25519"]
HEADERS = (
    "Content-Security-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-XSS-Protection",
)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _version(name: str) -> str:
    if name in {"TLS10", "TLS11"}:
        raise ValueError(f"{name} is broken and is not served; use TLS12 or TLS13")
    return name


def _client_auth(name: str) -> str:
    if name in {"RequestClientCert", "RequireAnyClientCert"}:
        raise ValueError(
            f"{name} takes certificates without verifying them, which Python's TLS cannot; "
            "use RequireAndVerifyClientCert or VerifyClientCertIfGiven with client_ca_file"
        )
    return name


def _hash(text: str) -> str:
    if not _BCRYPT.fullmatch(text):
        raise ValueError("is not a bcrypt hash; make one with: htpasswd -nBC 10 '' | tr -d ':'")
    return text


Hash = Annotated[str, AfterValidator(_hash)]


def _header(name: str) -> str:
    if name not in HEADERS:
        raise ValueError(f"is none of {', '.join(HEADERS)}")
    return name


class TlsServer(_Section):
    """`tls_server_config`."""

    cert: str = Field(default="", repr=False)
    key: str = Field(default="", repr=False)
    client_ca: str = Field(default="", repr=False)
    cert_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = None
    client_auth_type: Annotated[str, AfterValidator(_client_auth)] = "NoClientCert"
    client_allowed_sans: tuple[str, ...] = ()
    min_version: Annotated[str, AfterValidator(_version)] = "TLS12"
    max_version: Annotated[str, AfterValidator(_version)] = "TLS13"
    cipher_suites: tuple[str, ...] = ()
    prefer_server_cipher_suites: bool = True
    curve_preferences: tuple[Curve, ...] = ()

    @model_validator(mode="after")
    def _whole(self) -> TlsServer:
        for name in ("cert", "key", "client_ca"):
            if getattr(self, name) and getattr(self, f"{name}_file"):
                raise ValueError(f"{name} and {name}_file are two ways to say one thing")
        if not (self.cert or self.cert_file) or not (self.key or self.key_file):
            raise ValueError("needs cert_file and key_file")
        self._clients()
        if self.min_version > self.max_version:
            raise ValueError(f"min_version {self.min_version} is over {self.max_version}")
        if len(self.curve_preferences) > 1:
            raise ValueError("curve_preferences: Python's TLS takes one curve; name one, or none")
        return self

    def _clients(self) -> None:
        authority = self.client_ca or self.client_ca_file
        known = {"NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"}
        if self.client_auth_type not in known:
            words = " or ".join(sorted(known))
            raise ValueError(f"client_auth_type {self.client_auth_type} is none of {words}")
        if authority and self.client_auth_type == "NoClientCert":
            raise ValueError("client_ca is given, and client_auth_type does not ask for clients'")
        if not authority and self.client_auth_type != "NoClientCert":
            raise ValueError(f"client_auth_type {self.client_auth_type} needs client_ca_file")
        if self.client_allowed_sans and self.client_auth_type == "NoClientCert":
            raise ValueError("client_allowed_sans needs client_auth_type and client_ca_file")


class HttpServer(_Section):
    """`http_server_config`. HTTP/1.1 is served in any case: http2 is an offer that we pass on."""

    http2: bool = True
    headers: dict[Annotated[str, AfterValidator(_header)], str] = {}


class WebConfig(_Section):
    """The whole file. An empty one is plain HTTP for everybody."""

    tls_server_config: TlsServer | None = None
    http_server_config: HttpServer = HttpServer()
    basic_auth_users: dict[str, Hash] = Field(default={}, repr=False)

    @field_validator("tls_server_config", mode="before")
    @classmethod
    def _meant(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("has nothing under it; leave it out for plain HTTP")
        return value


def read(path: Path) -> WebConfig:
    """Read the file; paths in it are relative to it. Raises ConfigError with every fault."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        config = WebConfig.model_validate({} if content is None else content)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{KEY}: {path}: {getattr(error, 'strerror', error)}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{KEY}: {path}: is no YAML: {_where(error)}") from None
    except ValidationError as error:
        raise ConfigError("\n".join(_faults(path, error))) from None  # its text has the hashes
    return _resolved(config, path.parent)


def _where(error: yaml.YAMLError) -> str:
    """Say what is wrong and where, without the line itself: it may have a key or a hash in it."""
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}: " if mark else ""
    return place + str(getattr(error, "problem", None) or "it cannot be read")


def _faults(path: Path, error: ValidationError) -> list[str]:
    return [
        f"{KEY}: {path}: {'.'.join(map(str, each['loc'])) or 'the file'}: "
        + each["msg"].removeprefix("Value error, ")
        for each in error.errors(include_url=False, include_input=False)
    ]


def _resolved(config: WebConfig, folder: Path) -> WebConfig:
    tls = config.tls_server_config
    if tls is None:
        return config
    names = ("cert_file", "key_file", "client_ca_file")
    files: dict[str, Any] = {
        name: folder / getattr(tls, name) for name in names if getattr(tls, name)
    }
    return config.model_copy(update={"tls_server_config": tls.model_copy(update=files)})
