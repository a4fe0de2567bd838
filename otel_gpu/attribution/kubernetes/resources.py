"""What the kubelet says of a pod: which devices and claims each of its containers was given."""

from __future__ import annotations

from typing import Any, NamedTuple


class Claimed(NamedTuple):
    """A device that a ResourceClaim was given (dynamic resource allocation)."""

    driver: str
    pool: str
    device: str


class Container(NamedTuple):
    """A container, with device ids by the name of their resource, and claimed devices.

    `unprepared` counts claims of which the kubelet does not say yet what they were given.
    """

    name: str
    devices: tuple[tuple[str, tuple[str, ...]], ...] = ()
    claimed: tuple[Claimed, ...] = ()
    unprepared: int = 0


class Pod(NamedTuple):
    """A pod to which the kubelet gave something."""

    namespace: str
    name: str
    containers: tuple[Container, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from every other pod that is there at the same time."""
        return self.namespace, self.name


def pod(message: Any) -> Pod:
    """Give a v1.PodResources message in our own words."""
    return Pod(message.namespace, message.name, tuple(container(one) for one in message.containers))


def container(message: Any) -> Container:
    """Give a v1.ContainerResources message in our own words."""
    return Container(
        message.name,
        tuple((given.resource_name, tuple(given.device_ids)) for given in message.devices),
        tuple(
            Claimed(one.driver_name, one.pool_name, one.device_name)
            for claim in message.dynamic_resources
            for one in claim.claim_resources
        ),
        sum(1 for claim in message.dynamic_resources if not claim.claim_resources),
    )
