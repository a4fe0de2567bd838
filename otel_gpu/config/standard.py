"""`OTEL_*` variables: what OpenTelemetry's specification lets an environment say.

They stand behind the file: each fills what nobody has set. An empty one says nothing, and one that
cannot be read is left out with a warning, as the specification asks. What can be read is judged as
the file's values are: an endpoint that is no URL is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from otel_gpu.config.faults import Fault, KeyPath, dotted
from otel_gpu.config.layers import Layers
from otel_gpu.config.values import LONGEST

_OTLP = "OTEL_EXPORTER_OTLP_"
_ENDPOINTS = (f"{_OTLP}METRICS_ENDPOINT", f"{_OTLP}ENDPOINT")


def resource(layers: Layers, environ: Mapping[str, str]) -> list[Fault]:
    """Fill in Resource attributes; OTEL_SERVICE_NAME wins over OTEL_RESOURCE_ATTRIBUTES."""
    path = ("resource", "attributes")
    if name := environ.get("OTEL_SERVICE_NAME"):
        layers.fill(path, {"service.name": name}, "OTEL_SERVICE_NAME")
    variable = "OTEL_RESOURCE_ATTRIBUTES"
    if not (text := environ.get(variable)):
        return []
    try:
        layers.fill(path, _pairs(text), variable)
    except ValueError as error:
        return [Fault(variable, dotted(path), f"{error}; it is left out")]
    return []


def otlp(layers: Layers, environ: Mapping[str, str]) -> list[Fault]:
    """Fill in the `otlp` parts that the environment means, and give the warnings.

    Where nobody named the parts of the pipeline, an endpoint adds an `otlp` part to it.

    The variables describe one destination, with its credentials. So they go to the parts that
    leave their endpoint out, or else to the only part; where several parts all have endpoints of
    their own, they go to none.
    """
    given = [name for names, _, _ in _KEYS for name in names if environ.get(name)]
    endpoint = next((name for name in _ENDPOINTS if name in given), None)
    if not given or layers.pipeline() is None:
        return []
    if endpoint and layers.whence_pipeline() == "default" and not layers.parts("otlp"):
        layers.append("otlp", endpoint)
    parts = layers.parts("otlp")
    meant = [at for at in parts if (*_part(at), "endpoint") not in layers.origins]
    targets = meant or parts[: 1 if len(parts) == 1 else 0]
    if not targets:
        return _unused(layers, given, len(parts))
    return [each for at in targets for each in _fill_part(layers, _part(at), environ)]


def _part(at: int) -> KeyPath:
    return ("pipeline", at, "otlp")


def _unused(layers: Layers, given: list[str], count: int) -> list[Fault]:
    if count:
        why = f"each of the {count} otlp parts has an endpoint of its own"
        return [Fault(name, "", f"is not used: {why}") for name in given]
    why = f"the pipeline ({layers.whence_pipeline()}) has no part `otlp: {{}}`"
    return [Fault(name, "", f"is not used: {why}") for name in given if name in _ENDPOINTS]


def _fill_part(layers: Layers, part: KeyPath, environ: Mapping[str, str]) -> Iterator[Fault]:
    for names, below, read in _KEYS:
        name = next((name for name in names if environ.get(name)), None)
        if name is None or _settled(layers, part, below):
            continue
        try:
            layers.fill((*part, *below), read(name, environ), name)
        except ValueError as error:
            yield Fault(name, dotted((*part, *below)), f"{error}; it is left out")
    yield from _base_url(layers, part, environ)


def _base_url(layers: Layers, part: KeyPath, environ: Mapping[str, str]) -> Iterator[Fault]:
    """Warn of a metrics endpoint that is not where metrics go: the other signals need a base."""
    path, name = (*part, "endpoint"), _ENDPOINTS[0]
    over_grpc = "grpc" in (environ.get(each) for each in _both("PROTOCOL"))
    if layers.origins.get(path) != name or over_grpc:
        return
    if not environ[name].rstrip("/ ").endswith("/v1/metrics"):
        yield Fault(name, dotted(path), "does not end in /v1/metrics, so that will be added")


def _settled(layers: Layers, part: KeyPath, below: KeyPath) -> bool:
    """Whether the file says it already; headers may also come from a file of their own."""
    settled = (*part, *below) if below != ("headers",) else (*part, "headers_file")
    return settled in layers.origins


def _pairs(text: str) -> dict[str, str]:
    """Read `a=1,b=2` with percent-encoding (the specification's form of baggage)."""
    pairs = [each.partition("=") for each in text.split(",") if each.strip()]
    if any(not equals or not key.strip() for key, equals, _ in pairs):
        raise ValueError("is not of the form name=value,name=value")
    return {unquote(key.strip()): unquote(value.strip()) for key, _, value in pairs}


Read = Callable[[str, Mapping[str, str]], Any]


def _endpoint(name: str, environ: Mapping[str, str]) -> str:
    """Give a URL without a scheme the one that OTEL_EXPORTER_OTLP_INSECURE asks for."""
    text = environ[name].strip()
    insecure = environ.get(f"{_OTLP}METRICS_INSECURE") or environ.get(f"{_OTLP}INSECURE") or ""
    return f"http://{text}" if "://" not in text and insecure.lower() == "true" else text


def _milliseconds(name: str, environ: Mapping[str, str]) -> float:
    text = environ[name].strip()
    if not re.fullmatch("[0-9]{1,10}", text) or not 0.1 <= int(text) / 1000 <= LONGEST:
        raise ValueError(f"{text} is not a number of milliseconds from 100 on")
    return int(text) / 1000


def _one_of(*choices: str) -> Read:
    def read(name: str, environ: Mapping[str, str]) -> str:
        text = environ[name].strip().lower()
        if text not in choices:
            raise ValueError(f"{text} is none of {', '.join(choices)}")
        return text

    return read


def _headers(name: str, environ: Mapping[str, str]) -> dict[str, str]:
    return _pairs(environ[name])


def _file(name: str, environ: Mapping[str, str]) -> str:
    return environ[name]


def _both(name: str) -> tuple[str, str]:
    return f"{_OTLP}METRICS_{name}", f"{_OTLP}{name}"


_KEYS: tuple[tuple[tuple[str, ...], KeyPath, Read], ...] = (
    (_ENDPOINTS, ("endpoint",), _endpoint),
    (_both("PROTOCOL"), ("protocol",), _one_of("http/protobuf", "grpc")),
    (_both("HEADERS"), ("headers",), _headers),
    (_both("TIMEOUT"), ("timeout",), _milliseconds),
    (_both("COMPRESSION"), ("compression",), _one_of("gzip", "none")),
    (_both("CERTIFICATE"), ("tls", "ca_file"), _file),
    (_both("CLIENT_CERTIFICATE"), ("tls", "cert_file"), _file),
    (_both("CLIENT_KEY"), ("tls", "key_file"), _file),
    (
        (f"{_OTLP}METRICS_TEMPORALITY_PREFERENCE",),
        ("temporality",),
        _one_of("cumulative", "delta"),
    ),
    (("OTEL_METRIC_EXPORT_INTERVAL",), ("interval",), _milliseconds),
)
"""The variables, the first one set counts; the key that they fill; how they are read."""
