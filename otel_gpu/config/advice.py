"""Settings that are possible, and probably not what is wanted: the warnings."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from otel_gpu.config.faults import KeyPath, dotted
from otel_gpu.config.parts import Otlp, Prometheus
from otel_gpu.config.settings import Sampling, Settings
from otel_gpu.config.values import format_duration

Advice = tuple[KeyPath, str]

_USUAL_PORT = {4317: "grpc", 4318: "http/protobuf"}


def advice(settings: Settings) -> Iterator[Advice]:
    """Give each warning with the key that it is about."""
    for at, part in enumerate(settings.pipeline):
        path: KeyPath = ("pipeline", at, part.name)
        if isinstance(part.options, Otlp):
            yield from _uneven(settings.sampling, part.options, path)
            yield from _otlp(part.options, path)
        if isinstance(part.options, Prometheus):
            yield from _prometheus(part.options, path)


def _uneven(sampling: Sampling, otlp: Otlp, path: KeyPath) -> Iterator[Advice]:
    """Find tiers that do not divide the push interval.

    What grows evenly then grows by different amounts from push to push, so that a constant 700 W
    shows as 467 W and 933 W.
    """
    pushes = f"{dotted(path)}.interval, {format_duration(otlp.interval)}"
    for tier in ("fast", "default"):
        every = getattr(sampling, tier)
        if every < otlp.interval and not _divides(every, otlp.interval):
            words = f"does not divide {pushes}: even rates will look uneven"
            yield ("sampling", tier), f"{format_duration(every)} {words}"


def _divides(part: float, whole: float) -> bool:
    times = whole / part
    return abs(times - round(times)) < 1e-9


def _otlp(otlp: Otlp, path: KeyPath) -> Iterator[Advice]:
    url = urlsplit(otlp.endpoint)
    usual = _USUAL_PORT.get(url.port or 0, otlp.protocol)
    if usual != otlp.protocol:
        words = f"port {url.port} is usually {usual}, and protocol is {otlp.protocol}"
        yield (*path, "endpoint"), words
    if url.scheme == "http" and (otlp.tls.ca_file or otlp.tls.cert_file):
        yield (*path, "tls"), "is not used: the endpoint is http://, without encryption"


def _prometheus(options: Prometheus, path: KeyPath) -> Iterator[Advice]:
    if options.counters_file and options.names == ("otel",):
        yield (*path, "counters_file"), "is not used: names has no dcgm version"
