"""The kubelet as far as the agent asks it: PodResources v1, spoken by Kubernetes' own types."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path

from .binaries import Binaries
from .process import Server


class Kubelet(Server):
    """A kubelet whose pods were given GPUs; `give` changes what, while it runs or does not."""

    def __init__(self, binaries: Binaries, directory: Path) -> None:
        self.path = directory / "kubelet.sock"
        self._answer = directory / "pods.json"
        self.give({})
        command = [str(binaries.kubelet), str(self.path), str(self._answer)]
        super().__init__("kubelet", command, directory, "")

    def give(self, pods: Mapping[tuple[str, str], list[str]]) -> None:
        """Give device ids to the container `main` of each pod, by namespace and name."""
        said = [
            {
                "namespace": namespace,
                "name": name,
                "containers": [
                    {
                        "name": "main",
                        "devices": [{"resource_name": "nvidia.com/gpu", "device_ids": ids}],
                    }
                ],
            }
            for (namespace, name), ids in pods.items()
        ]
        new = self._answer.with_suffix(".new")  # renamed, or a call may see half of it
        new.write_text(json.dumps(said), encoding="utf-8")
        new.rename(self._answer)

    def _is_ready(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.path)) == 0
