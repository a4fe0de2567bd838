"""Where answers come from: `open_backend` finds the one that a name asks for, and nothing more."""

from __future__ import annotations

from importlib import import_module

from otel_gpu.model import Backend, ConfigError

FORMS = "nvml, simulated, simulated:SPEC, recorded:FILE, python:MODULE:CLASS or ...:CLASS:SPEC"


def open_backend(name: str) -> Backend:
    """Make the backend that `name` asks for; the driver is touched only by its own `open`.

    - `nvml`: the driver of this machine.
    - `simulated`, `simulated:SPEC`: a box of GPUs made from the catalog.
    - `recorded:FILE`: a machine that was recorded with `otel-gpu record FILE`.
    - `python:MODULE:CLASS`, `python:MODULE:CLASS:SPEC`: any class that keeps to `model.Backend`;
      it is called without arguments, or with SPEC as the only one. This is how third parties and
      tests bring their own.

    Raises ConfigError for a name that is none of these, and for a class that cannot be imported.
    """
    # Only the chosen module is imported: the agent must never load pynvml, and the worker must
    # load neither the catalog nor anything else that this machine does not need.
    kind, _, rest = name.partition(":")
    if name == "nvml":
        return _made("otel_gpu.backends.nvml", "NvmlBackend")
    if kind == "simulated":
        return _made("otel_gpu.backends.simulated", "SimulatedBackend.from_spec", rest)
    if kind == "recorded" and rest:
        return _made("otel_gpu.backends.recorded", "RecordedBackend", rest)
    if kind == "python" and rest.count(":"):
        return _made(*rest.split(":", 2))
    raise ConfigError(f"backend {name!r} is not known: write {FORMS}")


def _made(module: str, path: str, *arguments: str) -> Backend:
    try:
        maker = import_module(module)
        for attribute in path.split("."):
            maker = getattr(maker, attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"backend {module}:{path} cannot be loaded: {error}") from error
    backend: Backend = maker(*arguments)  # type: ignore[operator] # whatever the name led to
    return backend
