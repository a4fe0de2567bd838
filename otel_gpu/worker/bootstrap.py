"""How the worker's interpreter is started: with little, and with nothing from around it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
UNWANTED = frozenset({"NVML_MPS_DEVICE_ENUMERATION"})
AGENTS = "OTEL_"
"""How the variables begin that are for the agent alone: some of them are credentials."""

BOOTSTRAP = """\
import sys
sys.path[:] = {path!r}
from otel_gpu.worker.child import main
main({backend!r}, {page})
"""


def command(backend: str, page: int) -> list[str]:
    """Write the command line of a worker for a backend; `page` is the descriptor it inherits.

    An interpreter that does not search for packages starts in half the time, and an isolated one
    cannot be led astray by the environment or the working directory. So the agent's own search
    path is handed over as it is.
    """
    path = [str(Path(entry).absolute()) for entry in (*sys.path, str(PACKAGE.parent))]
    text = BOOTSTRAP.format(path=list(dict.fromkeys(path)), backend=backend, page=page)
    return [sys.executable, "-I", "-S", "-c", text]


def environment(agents: Mapping[str, str]) -> dict[str, str]:
    """Give the worker the agent's environment, without what is for the agent alone.

    And without what makes NVML show another set of GPUs.
    """
    return {
        name: value
        for name, value in agents.items()
        if name not in UNWANTED and not name.startswith(AGENTS)
    }
