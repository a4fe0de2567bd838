"""The names of the pods on this node by UID, as the directories of their logs are called.

A cgroup tells a pod's UID, the kubelet's socket its name. Where nobody may ask the API, the
kubelet's own directory joins them: /var/log/pods/<namespace>_<name>_<uid>, which everyone may list.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

DIRECTORY = Path("/var/log/pods")
MOST = 10_000  # pods on one node, of which some hundred are usual

Key = tuple[str, str]  # namespace and name


def names(directory: Path = DIRECTORY) -> Mapping[str, Key]:
    """List the pods by UID; nothing where there is no such directory."""
    found: dict[str, Key] = {}
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                parts = entry.name.split("_")  # which is in no name of Kubernetes'
                if len(parts) == 3 and len(found) < MOST:
                    namespace, name, uid = parts
                    found[uid] = (namespace, name)
    except OSError:
        return {}
    return found
