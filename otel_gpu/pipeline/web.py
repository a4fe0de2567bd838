"""Who may come in and how: the web configuration file, followed while the agent runs."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from otel_gpu.model import ConfigError
from otel_gpu.pipeline import tls
from otel_gpu.pipeline.watched import Watched
from otel_gpu.pipeline.web_config import KEY, WebConfig, read

LOOK_S = 1.0
"""How often the files are looked at, at most: a handshake or a request makes it happen."""


class _Now(NamedTuple):
    config: WebConfig
    context: ssl.SSLContext | None


class Web:
    """The configuration as its file says it now. Raises ConfigError when it cannot be used.

    A listener is plain or not for as long as it lives: a file that changes that is refused.
    """

    def __init__(self, path: Path, look_s: float = LOOK_S) -> None:
        self._path = path
        self._is_tls: bool | None = None
        self._files = Watched(self._read, self._named, look_s)
        self._is_tls = self._files.current().context is not None

    @property
    def context(self) -> ssl.SSLContext | None:
        """What a listener is given, which follows the files; None: plain HTTP."""
        if not self._is_tls:
            return None
        return tls.Following.of(lambda: cast("ssl.SSLContext", self._files.current().context))

    def users(self) -> Mapping[str, str]:
        """Give the hash of each user's password."""
        return self._files.current().config.basic_auth_users

    def headers(self) -> Mapping[str, str]:
        """Give what is sent with every answer."""
        return self._files.current().config.http_server_config.headers

    def admits(self, certificate: dict[str, Any] | None) -> bool:
        """Whether a client with this certificate may come in."""
        config = self._files.current().config.tls_server_config
        return config is None or tls.admits(config, certificate)

    def _read(self) -> _Now:
        config = read(self._path)
        secured = config.tls_server_config
        if self._is_tls is not None and (secured is not None) != self._is_tls:
            raise ConfigError(f"{KEY}: {self._path}: TLS is switched on or off by a restart only")
        return _Now(config, tls.context(secured) if secured else None)

    def _named(self, now: _Now) -> Sequence[Path]:
        config = now.config.tls_server_config
        named = (config.cert_file, config.key_file, config.client_ca_file) if config else ()
        return [self._path, *(path for path in named if path)]
