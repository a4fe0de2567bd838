"""The Kubernetes API as a pod of the node may ask it, for the few things no other place tells.

Source: kubernetes.io, "Accessing the Kubernetes API from a Pod" and "Kubernetes API Concepts"
(watch, bookmarks, metadata only). Objects come as metadata where that is enough: a tenth of a pod.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import requests

from otel_gpu.model import OtelGpuError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CONNECT_S, READ_S = 3.05, 10.0
JSON = "application/json"
METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=1"
PAGE = 500
REASONS = {401: "permission", 403: "permission", 404: "unimplemented", 410: "expired"}


class ApiError(OtelGpuError):
    """The API could not be asked: why in one word, and in one sentence."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


class Api:
    """Asks with the pod's own service account, whose token is read anew each time: it rotates."""

    def __init__(self, url: str, account: Path = ACCOUNT) -> None:
        self.url = url
        self._account = account
        self._session = requests.Session()
        self._session.trust_env = False  # the API of the cluster is behind no proxy

    def list(
        self, path: str, params: Mapping[str, str], *, metadata: bool = False
    ) -> tuple[list[Mapping[str, Any]], str]:
        """Give all objects, page by page, and the version from which to watch. Raises ApiError."""
        items: list[Mapping[str, Any]] = []
        # From the server's cache, as the kubelet asks: ten thousand agents must not go to etcd.
        asked = {**params, "limit": f"{PAGE}", "resourceVersion": "0"}
        while True:
            with self._get(path, asked, METADATA.format("List") if metadata else JSON) as got:
                page = _parsed(got.content, path)
            items += page.get("items") or []
            described = page.get("metadata") or {}
            if not described.get("continue"):
                return items, described.get("resourceVersion", "")
            asked = {**params, "limit": f"{PAGE}", "continue": described["continue"]}

    def watch(
        self, path: str, params: Mapping[str, str], for_s: int
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Give (type, object) for each change, as metadata, until the server ends it.

        Raises ApiError; with the reason `expired` everything is to be listed anew.
        """
        bounded = {"timeoutSeconds": f"{for_s}", "allowWatchBookmarks": "true"}
        asked = {**params, **bounded, "watch": "1"}
        with self._get(path, asked, METADATA.format(""), stream=True, read_s=for_s + READ_S) as got:
            try:
                for line in got.iter_lines():
                    event = _parsed(line, path)
                    kind, thing = event.get("type", ""), event.get("object") or {}
                    if kind == "ERROR":
                        raise _error(thing.get("code", 500), path, thing.get("message", ""))
                    yield kind, thing
            except requests.RequestException as error:
                raise ApiError("unavailable", f"{path}: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _get(
        self,
        path: str,
        params: Mapping[str, str],
        accept: str,
        *,
        stream: bool = False,
        read_s: float = READ_S,
    ) -> requests.Response:
        headers = {"Accept": accept}
        token = self._account / "token"
        authority = self._account / "ca.crt"
        try:
            headers["Authorization"] = f"Bearer {token.read_text(encoding='ascii').strip()}"
            got = self._session.get(
                self.url + path,
                params=params,
                headers=headers,
                stream=stream,
                timeout=(CONNECT_S, read_s),
                verify=str(authority) if authority.exists() else True,
            )
        except (OSError, ValueError) as error:  # requests' own errors are OSErrors
            raise ApiError("unavailable", f"{path}: {error}") from error
        if got.status_code != requests.codes.ok:
            got.close()
            raise _error(got.status_code, path, got.reason or "")
        return got


def in_cluster(environ: Mapping[str, str], account: Path = ACCOUNT) -> Api | None:
    """Give the API of the cluster that this process is a pod of; None outside of one."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not (account / "token").exists():
        return None
    named = f"[{host}]" if ":" in host else host
    return Api(f"https://{named}:{port or 443}", account)


def _parsed(text: bytes, path: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise ApiError("error", f"{path}: not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise ApiError("error", f"{path}: not an object")
    return parsed


def _error(code: int, path: str, said: str) -> ApiError:
    reason = REASONS.get(code, "error" if code < 500 else "unavailable")
    advice = "; give the service account get, list and watch of it" if code == 403 else ""
    return ApiError(reason, f"{path}: {code} {said}{advice}")
