"""Containers as owners: Docker, Podman and others, by the id in the cgroups of their processes."""

from __future__ import annotations

from otel_gpu.attribution import Claims, Health, View
from otel_gpu.attribution.processes import Processes
from otel_gpu.model import Owner

NAME = "container"


class ContainerSource:
    """Reads the cgroups of the processes shown; no runtime is asked, so none has to be trusted.

    `pods`: whether containers of Kubernetes count too, because no other source tells of them.
    """

    def __init__(
        self, processes: Processes | None = None, *, insists: bool = False, pods: bool = False
    ) -> None:
        self.insists = insists
        self.pods = pods
        self._processes = processes or Processes()
        self._seen = False
        self._health = Health(NAME, up=False, reason="unread", detail="not looked at yet")

    def claims(self, view: View) -> Claims:
        """Say in which container each process runs."""
        holders = {
            key: Owner((("container.id", place.container),))
            for key, place in self._processes.places(view)
            if place.container and (self.pods or not place.pod)
        }
        self._seen = self._seen or bool(holders)
        dormant = not (self.insists or self._seen)
        self._health = Health(NAME, up=True, dormant=dormant)
        if view.blind and not dormant:
            self._health = Health(NAME, up=False, reason="pid_namespace", detail=view.blind)
        return Claims(holders=holders)

    def health(self) -> Health:
        """Say whether processes can be seen."""
        return self._health

    def close(self) -> None:
        """Hold nothing."""
