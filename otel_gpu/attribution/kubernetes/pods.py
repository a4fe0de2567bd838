"""What the API knows of the node's pods: UID, labels and what made them; and which have ended.

Only what is allowed is kept, only metadata is asked for, and only of this node's pods that run: one
that ends leaves the selection, which the watch tells like a deletion.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from otel_gpu.attribution import Claims, Health, View
from otel_gpu.attribution.kubernetes.api import Api, ApiError
from otel_gpu.model import Attributes

NAME = "kubernetes_api"
PATH = "/api/v1/pods"
WATCH_S = 300  # then the watch is begun anew where it ended
PAUSES_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # between tries, each longer by up to a half
SHORT_S = 1.0  # for a watch
MOST_ENDED = 1000
HASH = "pod-template-hash"

Key = tuple[str, str]  # namespace and name

log = logging.getLogger(__name__)


class Known(NamedTuple):
    """What is known of a pod: its UID, and what is to stand on its points."""

    uid: str
    attributes: Attributes


class Allowed(NamedTuple):
    """Which labels, by glob, and which kinds of owners are wanted on points."""

    labels: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


def known(metadata: Mapping[str, Any], allowed: Allowed) -> Known:
    """Read an object's metadata."""
    labels = metadata.get("labels") or {}
    attributes = [
        (f"k8s.pod.label.{key}", value)
        for key, value in sorted(labels.items())
        if any(fnmatchcase(key, glob) for glob in allowed.labels)
    ]
    for kind, name in _makers(metadata, labels):
        if kind in allowed.kinds:
            attributes.append((f"k8s.{kind}.name", name))
    return Known(metadata.get("uid", ""), tuple(attributes))


def _makers(metadata: Mapping[str, Any], labels: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Give what controls a pod; and the deployment: its replica sets have its name and a hash."""
    for reference in metadata.get("ownerReferences") or ():
        if not reference.get("controller"):
            continue
        kind, name = str(reference.get("kind", "")).lower(), str(reference.get("name", ""))
        ending = f"-{labels.get(HASH)}"
        if kind == "replicaset" and name.endswith(ending):
            yield "deployment", name.removesuffix(ending)
        yield kind, name


class Pods:
    """Follows the pods of a node in a thread of its own. A source that lends what it knows."""

    def __init__(
        self,
        api: Api | None,
        node: str,
        allowed: Allowed,
        pauses_s: tuple[float, ...] = PAUSES_S,
    ) -> None:
        self._api = api
        self._node = node
        self._allowed = allowed
        self._pauses_s = pauses_s
        self._known: dict[Key, Known] = {}
        self._ended: dict[Key, None] = {}
        self._tries = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._listed = threading.Event()
        self._health = Health(NAME, up=False, reason="unread", detail="not asked yet")

    @property
    def known(self) -> Mapping[Key, Known]:
        """The pods that run; the last answer while the API cannot be asked."""
        return self._known

    def has_ended(self, key: Key) -> bool:
        """Whether a pod was seen to end; the kubelet may still list it."""
        return key in self._ended and key not in self._known

    def claims(self, _view: View) -> Claims:
        """Begin to follow, the first time; it claims nothing itself."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="kubernetes-api", daemon=True)
            self._thread.start()
            self._listed.wait(2.0)
        return Claims()

    def health(self) -> Health:
        """Say whether the API is being followed."""
        return self._health

    def close(self) -> None:
        """End the thread; a watch that waits is left to its time-out."""
        self._stop.set()
        if self._api:
            self._api.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except ApiError as error:
                if error.reason != "expired":  # which every watch is some time: list anew
                    self._fail(error.reason, error.detail)
                self._pause()
            except Exception as error:  # what the API answers must not end the thread
                if self._stop.is_set():  # it was closed while it was read from
                    return
                log.exception("%s: an answer was not understood", PATH)
                self._fail("error", f"{PATH}: {error}")
                self._pause()

    def _pause(self) -> None:
        """Wait, longer each time until a list succeeds; not all nodes of a cluster the same."""
        pause_s = self._pauses_s[min(self._tries, len(self._pauses_s) - 1)]
        self._tries += 1
        self._stop.wait(pause_s * random.uniform(1.0, 1.5))  # noqa: S311 - nothing is secret

    def _fail(self, reason: str, detail: str) -> None:
        self._health = Health(NAME, up=False, reason=reason, detail=detail)
        self._listed.set()

    def _follow(self) -> None:
        """List the pods, then watch them until the watch fails. Raises ApiError."""
        if self._api is None:
            raise ApiError("no_api", "not in a pod with a service account: there is no API to ask")
        if not self._node:
            raise ApiError("no_node", "K8S_NODE_NAME is not set; give it from spec.nodeName")
        running = "status.phase!=Succeeded,status.phase!=Failed"
        selected = {"fieldSelector": f"spec.nodeName={self._node},{running}"}
        items, version = self._api.list(PATH, selected, metadata=True)
        found = {_key(item): known(_metadata(item), self._allowed) for item in items}
        self._end(self._known.keys() - found.keys())
        self._known = found
        self._health = Health(NAME, up=True)
        self._tries = 0
        self._listed.set()
        while not self._stop.is_set():
            asked = {**selected, "resourceVersion": version}
            begun_s = time.monotonic()
            for kind, item in self._api.watch(PATH, asked, WATCH_S):
                version = _metadata(item).get("resourceVersion", version)
                self._take(kind, item)
            if time.monotonic() - begun_s >= SHORT_S:
                self._tries = 0
            else:  # something between ends each at once
                self._pause()

    def _take(self, kind: str, item: Mapping[str, Any]) -> None:
        key = _key(item)
        if kind in {"ADDED", "MODIFIED"}:
            self._known = {**self._known, key: known(_metadata(item), self._allowed)}
            self._ended.pop(key, None)
        elif kind == "DELETED":
            self._known = {other: one for other, one in self._known.items() if other != key}
            self._end([key])

    def _end(self, keys: Iterable[Key]) -> None:
        self._ended |= dict.fromkeys(keys)
        while len(self._ended) > MOST_ENDED:
            del self._ended[next(iter(self._ended))]


def _metadata(item: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata: Mapping[str, Any] = item.get("metadata") or {}
    return metadata


def _key(item: Mapping[str, Any]) -> Key:
    metadata = _metadata(item)
    return metadata.get("namespace", ""), metadata.get("name", "")
