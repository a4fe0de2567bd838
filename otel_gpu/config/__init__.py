"""agent.yaml, environment and flags, read into settings or refused with every fault at once."""

from otel_gpu.config.faults import Fault
from otel_gpu.config.keys import Key, keys
from otel_gpu.config.loading import Loaded, check, load
from otel_gpu.config.parts import Console, File, Otlp, Part, Prometheus, Queue, Tls
from otel_gpu.config.schema import schema
from otel_gpu.config.settings import Attribution, Settings
from otel_gpu.config.shipped import shipped_yaml
from otel_gpu.config.show import show
from otel_gpu.config.values import split_address

__all__ = [
    "Attribution",
    "Console",
    "Fault",
    "File",
    "Key",
    "Loaded",
    "Otlp",
    "Part",
    "Prometheus",
    "Queue",
    "Settings",
    "Tls",
    "check",
    "keys",
    "load",
    "schema",
    "shipped_yaml",
    "show",
    "split_address",
]
