"""Pods as owners of GPUs: what the kubelet gave them, and which of them runs a process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from otel_gpu.attribution import Claims, Health, Owners, View
from otel_gpu.attribution.cgroups import Place
from otel_gpu.attribution.kubernetes.api import Api, ApiError
from otel_gpu.attribution.kubernetes.given import Held, given
from otel_gpu.attribution.kubernetes.kubelet import Kubelet, KubeletError
from otel_gpu.attribution.kubernetes.names import DIRECTORY, Key, names
from otel_gpu.attribution.kubernetes.pods import Known, Pods
from otel_gpu.attribution.kubernetes.resources import Claimed, Pod
from otel_gpu.attribution.kubernetes.slices import DRIVER, Uuids, resolved, uuids
from otel_gpu.attribution.processes import Processes
from otel_gpu.model import Attributes, Device, Owner

NAME = "kubernetes"
SLICES_S = 30.0  # between two looks at the ResourceSlices, while a claim is not understood
SLICES = tuple(
    f"/apis/resource.k8s.io/{version}/resourceslices" for version in ("v1", "v1beta2", "v1beta1")
)


class Besides(NamedTuple):
    """What else is asked: about processes, names, and the API where it may be."""

    processes: Processes = Processes()
    directory: Path = DIRECTORY
    pods: Pods | None = None
    api: Api | None = None
    node: str = ""


class KubernetesSource:
    """Asks the kubelet each time; keeps its last answer while it cannot be asked."""

    def __init__(
        self,
        kubelet: Kubelet,
        resource_names: Sequence[str] = (),
        besides: Besides | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kubelet = kubelet
        self._resource_names = resource_names
        self._besides = besides or Besides()
        self._clock = clock
        self._pods: Sequence[Pod] = ()
        self._uuids: Uuids = {}
        self._sliced_s: float | None = None
        self._health = Health(NAME, up=False, reason="unread", detail="not asked yet")
        self._oddities: list[str] = []

    def claims(self, view: View) -> Claims:
        """Say which pod was given which GPU, and which pod each process on one is of."""
        given_to = self._listed(view)
        besides = self._besides
        known = besides.pods.known if besides.pods else {}
        by_uid = {**names(besides.directory), **{one.uid: key for key, one in known.items()}}
        places = {key: place for key, place in besides.processes.places(view) if place.pod}
        describe = _Describing(by_uid, known)
        owners = {}
        for uuid, several in given_to.items():
            running = [place.pod for (on, _), place in places.items() if on == uuid]
            held = [describe.owner(one, running) for one in several if not self._ended(one)]
            if held:
                owners[uuid] = tuple(held)
        return Claims(owners, describe.holders(places, owners))

    def health(self) -> Health:
        """Say whether the kubelet was asked, and what of its answer is not understood."""
        return self._health

    def close(self) -> None:
        """Close the connections."""
        self._kubelet.close()
        if self._besides.api:
            self._besides.api.close()

    def _listed(self, view: View) -> Mapping[str, Sequence[Held]]:
        """Ask the kubelet who was given what, and note how that went."""
        self._oddities = []
        trouble: KubeletError | None = None
        try:
            self._pods = [self._prepared(pod) for pod in self._kubelet.pods()]
        except KubeletError as error:
            trouble = error
        found = given(self._pods, view.devices, self._resource_names, self._resolve(view.devices))
        if found.unknown:
            self._oddities.append(f"no GPU is known as {', '.join(found.unknown[:5])}")
        self._health = (
            Health(NAME, up=False, reason=trouble.reason, detail=trouble.detail)
            if trouble
            else Health(NAME, up=True, detail="; ".join(self._oddities))
        )
        return found.held

    def _ended(self, held: Held) -> bool:
        """Whether the API told that a pod has ended, which the kubelet may list for some time."""
        return bool(self._besides.pods and self._besides.pods.has_ended(held.pod))

    def _prepared(self, pod: Pod) -> Pod:
        """Ask again for a pod with a claim that was not prepared when the list was made."""
        if not any(container.unprepared for container in pod.containers):
            return pod
        try:
            return self._kubelet.pod(*pod.key)
        except KubeletError:  # an old kubelet does not know Get; the next list will tell
            return pod

    def _resolve(self, devices: Sequence[Device]) -> Callable[[Claimed], Sequence[Device]]:
        def resolve(claimed: Claimed) -> Sequence[Device]:
            here = {device.uuid for device in devices}
            if claimed.driver == DRIVER and self._uuids.get(claimed) not in here:
                self._look_at_slices()
            return resolved(claimed, devices, self._uuids)

        return resolve

    def _look_at_slices(self) -> None:
        now_s = self._clock()
        recent = self._sliced_s is not None and now_s - self._sliced_s < SLICES_S
        if recent or self._besides.api is None:
            return
        self._sliced_s = now_s
        selected = {"fieldSelector": f"spec.nodeName={self._besides.node}"}
        for path in SLICES:
            try:
                items, _ = self._besides.api.list(path, selected if self._besides.node else {})
                self._uuids = uuids(items)
            except ApiError as error:
                if error.reason == "unimplemented":
                    continue  # an older cluster has an older version
                self._oddities.append(error.detail)
            return


class _Describing(NamedTuple):
    """Makes owners of pods, from what is known of them."""

    by_uid: Mapping[str, Key]
    known: Mapping[Key, Known]

    def owner(self, held: Held, running: Sequence[str]) -> Owner:
        """Describe a holder; `running` are the UIDs of the pods that run on the same GPU."""
        container = held.containers[0] if len(held.containers) == 1 else ""
        return self._owner(held.pod, container, self._uid(held.pod, running))

    def holders(
        self, places: Mapping[tuple[str, int], Place], owners: Owners
    ) -> Mapping[tuple[str, int], Owner]:
        """Say whose each process is that runs in a pod; the same owner as the kubelet's, if so."""
        found = {}
        for (uuid, pid), place in places.items():
            owner = self._holder(place, owners.get(uuid, ()))
            if owner:
                found[uuid, pid] = owner
        return found

    def _holder(self, place: Place, owners: Sequence[Owner]) -> Owner | None:
        key = self.by_uid.get(place.pod)
        if key:
            named = _named(key)
            given_to = [one for one in owners if one.attributes[: len(named)] == named]
            return given_to[0] if given_to else self._owner(key, "", place.pod)
        if owners or not place.container:
            return None  # nobody says which of them it is
        return Owner((("container.id", place.container),), (("k8s.pod.uid", place.pod),))

    def _owner(self, key: Key, container: str, uid: str) -> Owner:
        attributes = _named(key)
        if container:
            attributes += (("k8s.container.name", container),)
        if key in self.known:
            attributes += self.known[key].attributes
        return Owner(attributes, (("k8s.pod.uid", uid),) if uid else ())

    def _uid(self, key: Key, running: Sequence[str]) -> str:
        """Give a pod's UID; "" where another pod of its name was there before and may be meant."""
        if key in self.known:
            return self.known[key].uid
        candidates = [uid for uid, named in self.by_uid.items() if named == key]
        seen = [uid for uid in candidates if uid in running]
        sure = seen if len(set(seen)) == 1 else candidates
        return sure[0] if len(set(sure)) == 1 else ""


def _named(key: Key) -> Attributes:
    namespace, name = key
    return (("k8s.namespace.name", namespace), ("k8s.pod.name", name))
