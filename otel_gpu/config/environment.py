"""`OTEL_GPU_*` variables and command-line flags: which keys they set, and to what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from otel_gpu.config.document import is_text, parse, plain
from otel_gpu.config.faults import Fault, nearest
from otel_gpu.config.keys import PREFIX, Key, keys
from otel_gpu.config.layers import Assignment

RESERVED = frozenset(
    {
        "OTEL_GPU_CONFIG",  # the path of the file, for the command line
        "OTEL_GPU_VERSION",  # images like to say their version so; the file's own is no setting
        "OTEL_GPU_E2E_CACHE",  # of the test set
    }
)

FLAG = "flag"
"""The origin of a value that the command line gave."""

# A Kubernetes Service called otel-gpu or otel-gpu-metrics puts these into every pod beside it.
_SERVICE = re.compile(
    PREFIX + r"(?:[A-Z0-9_]+_)?"
    r"(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_[A-Z]+)?)?)"
)

Found = Iterator[Assignment | Fault]


def from_environment(environ: Mapping[str, str]) -> Found:
    """Give what `OTEL_GPU_*` variables say; an empty one says nothing.

    `OTEL_GPU_SAMPLING__FAST=2s`: two underscores go one level down. Lists, mappings and whole
    sections are YAML: `OTEL_GPU_METRICS__ENABLE='[nvidia.gpu.process.*]'`. A part of the pipeline
    goes by its name, `OTEL_GPU_PIPELINE__PROMETHEUS__ADDRESS`, and is added if there is none; where
    there are several of one kind, only `OTEL_GPU_PIPELINE` sets them, as a whole.
    """
    known = {key.variable: key for key in keys()}
    for name in sorted(environ):
        if not name.startswith(PREFIX) or not environ[name] or _foreign(name):
            continue
        if name in known:
            yield _given(known[name], environ[name], name)
        else:
            yield Fault(name, "", _unknown("variable", name, list(known)))


def from_flags(flags: Mapping[str, object]) -> Found:
    """Give what flags say, by key: `sampling.fast`, `pipeline.prometheus.address`.

    None is a flag that was not given. Text is read as in a variable, other values are as they are.
    """
    known = {key.name: key for key in keys()}
    for name, value in flags.items():
        if value is None:
            continue
        if name in known:
            yield _given(known[name], value, FLAG)
        else:
            yield Fault(FLAG, name, _unknown("key", name, list(known)))


def decoded(environ: Mapping[str, str]) -> tuple[Mapping[str, str], list[Fault]]:
    """Leave out what is not UTF-8; where it would have been a setting, that is a fault."""
    wrong = [name for name, value in environ.items() if not is_text(name + value)]
    if not wrong:
        return environ, []
    faults = [Fault(name, "", "is not UTF-8 text") for name in wrong if _is_ours(name)]
    return {name: value for name, value in environ.items() if name not in wrong}, faults


def _is_ours(name: str) -> bool:
    return name.startswith((PREFIX, "OTEL_")) and is_text(name)


def _foreign(name: str) -> bool:
    return name in RESERVED or _SERVICE.fullmatch(name) is not None


def _given(key: Key, value: object, origin: str) -> Assignment | Fault:
    if isinstance(value, str):
        if key.holds == "value" or not value.lstrip().startswith(("[", "{")):
            return Assignment(key.path, plain(value), origin)
        document = parse(value, origin)
        if document.faults:
            fault = document.faults[0]
            return Fault(origin, key.name, fault.message)
        value = document.values
    return Assignment(key.path, value, origin)


def _unknown(kind: str, name: str, known: list[str]) -> str:
    ends = {each.removeprefix(PREFIX): each for each in known}
    meant = nearest(name.removeprefix(PREFIX), ends)
    if meant is None:
        return f"unknown {kind}; `otel-gpu config schema` lists the keys"
    return f"unknown {kind}; did you mean {ends[meant]}?"
