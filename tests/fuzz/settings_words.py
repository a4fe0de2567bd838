"""Values for every key: what can stand there, and what nobody would write there on purpose."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

SWITCHES = ("auto", "on", "off", True, False)
FILES = (None, "/tmp/x", "here/y.pem", "a b", "ü", "$HOME")
WORDS = ((), ["hw.power"], ["nvidia.*", "hw.*"], ["*"], None, ["[a-", "a$${b}"])

GOOD: Mapping[str, tuple[Any, ...]] = {
    "backend": ("nvml", "simulated", "simulated:2xH100", "recorded:box.json"),
    "fast": ("1s", "500ms", 0.5, 1, "0.25s"),
    "default": ("5s", "5000ms", 6, "0.1m"),
    "slow": ("60s", "1m", "1h", 3600, "1m30s"),
    "power_window": ("15s", "600s", 1, "2m", 0x10),
    "profile": ("none", "core", "standard", "full"),
    "enable": WORDS,
    "disable": WORDS,
    "tiers": ({}, None, {"hw.power": "10s"}, {"nvidia.gpu.*": 2.5, "*": "1h"}, {"a$${b}": "1s"}),
    "processes_per_gpu": (0, 20, "5", 10**9),
    "series": (1, 20_000, "100"),
    "include": ("all", [0], [0, "7", "GPU-8b1f", "0000:3b:00.0"], ["MIG-1", "3B:00.0"]),
    "mig": ("instances", "gpus", "both"),
    "identity": ("minimal", "full"),
    "scope": ("gpu", "node"),
    "attributes": (
        {},
        None,
        {"team": "ml", "racks": 3, "spare": True, "share": 0.5},
        {"k8s.cluster.name": "öst", "note": "a: b # c", "cost": "$5, $$6 or $${7}", "on": "on"},
        {"a": "", "b": "'\"\\", "c": "1.5", "d": "null", "e": "\t\n\u2028\x85", "f": 1e300},
        {"\u202eg": "\U0001f525", "h": "http://me:you@c/?d=e", "i": "0x1F", "j": -0.0, "k": "-"},
    ),
    "kubernetes": SWITCHES,
    "slurm": SWITCHES,
    "container": SWITCHES,
    "static": FILES,
    "pod_resources_socket": FILES[1:],
    "resource_names": ((), None, ["nvidia.com/gpu"], ["a"]),
    "pod_labels": ((), None, ["app", "team"]),
    "xid": (True, False),
    "kernel_log": SWITCHES,
    "pipeline": (None, [{"console": {}}], [{"otlp": None}, {"prometheus": {}}]),
    "address": (":9400", "127.0.0.1:0", "[::1]:9400", "box:1"),
    "names": (["otel"], ["otel", "dcgm-4.9"], ["dcgm-4.8.2"], ["otel", "otel"]),
    "counters_file": FILES,
    "web_config": FILES,
    "created": (True, False),
    "max_scrapes": (1, 16, "8"),
    "endpoint": ("http://c:4318",),
    "protocol": ("http/protobuf", "http/protobuf", "grpc"),
    "interval": ("15s", "1s", 10, 0.1),
    "timeout": ("10s", 3),
    "compression": ("gzip", "none"),
    "temporality": ("cumulative", "delta"),
    "headers": ({"a": "b"},),
    "headers_file": FILES,
    "ca_file": FILES,
    "cert_file": FILES,
    "key_file": FILES,
    "directory": FILES,
    "max_bytes": ("64MiB", "1B", 4096, "1.5KB", "1 GB", "1024TiB"),
    "path": ("gpu.jsonl", "/tmp/a b"),
    "rotate": ("100MiB", 1),
    "keep": (0, 5),
    "semconv": ("1.44", 1.44),
    "log_level": ("debug", "info", "warning", "error"),
    "log_format": ("auto", "text", "json"),
    "version": (1, "1"),
}
"""By the last word of the key."""

TEXTS = (
    *("", " ", "x", "nan", "auto", "Full", "sampling", "a.b", "fsat", "1s", "-1s", "1e999"),
    *("10 parsecs", "1_000", "0x10", "12:30:45", "2026-01-01", "yes", "~", ".", "..", "/", "*"),
    *("**", "[a-", "${X}", "${", "${}", "${A:-b}", "${A:-${B}}", "$${A}", "$", "$$", "%s%n{0}"),
    *("http://", "http://[::1", "://@", "http://c:0", "c:99999", "[::1%eth0]:1", ":", "@", "?"),
    *(
        "\0",
        "\x1b[31m",
        "\r\n",
        "\u2028",
        "\ufeff",
        "\ud800",
        "\u202e",
        "\u0661s",
        "\u00b2",
        "ü" * 90,
    ),
    *("a" * 3000, "1s" * 700, "9" * 5000, "1" * 16 + "s", "[" * 9, "://" * 500, "@" * 500, "!x"),
    *(
        "&a",
        "*a",
        "<<",
        "|",
        "- a",
        "a: b",
        "# a",
        "None",
        "Null",
        "\\",
        "'",
        '"',
        "99999999999TiB",
    ),
)

HOSTILE: tuple[Any, ...] = (
    *TEXTS,
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**18, 10**30, 10**400),
    *(0.0, -0.0, 0.1, 1e-300, 1e300, -1.5, math.nan, math.inf, -math.inf, [], {}, [None], [[]]),
    *(
        {"": 1},
        {"a": {}},
        {"1": 2},
        {"prometheus": {}, "otlp": {}},
        [1, [2, [3]]],
        {"<<": {"a": 1}},
    ),
)

STANDARD: Mapping[str, tuple[str, ...]] = {
    "OTEL_SERVICE_NAME": ("gpus", "ü"),
    "OTEL_RESOURCE_ATTRIBUTES": ("a=b", "a=b,c=%20d, e = f ,", "service.name=x"),
    "OTEL_EXPORTER_OTLP_ENDPOINT": ("",),
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": ("",),
    "OTEL_EXPORTER_OTLP_PROTOCOL": ("grpc", "http/protobuf", "http/json"),
    "OTEL_EXPORTER_OTLP_HEADERS": ("",),
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS": ("",),
    "OTEL_EXPORTER_OTLP_TIMEOUT": ("10000", "99", "\u0661\u0662\u0663\u0664"),
    "OTEL_EXPORTER_OTLP_COMPRESSION": ("gzip", "none", "zstd"),
    "OTEL_EXPORTER_OTLP_CERTIFICATE": ("/tmp/ca.pem",),
    "OTEL_EXPORTER_OTLP_CLIENT_KEY": ("/tmp/key.pem",),
    "OTEL_EXPORTER_OTLP_INSECURE": ("true", "false", "maybe"),
    "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": ("delta", "cumulative", "lowmemory"),
    "OTEL_METRIC_EXPORT_INTERVAL": ("60000", "1", "9999999999"),
    "OTEL_GPU_SERVICE_PORT": ("80",),
    "OTEL_GPU_PIPELINE": ("[prometheus: {}]", "[otlp: {}, console: {}]", "{", "prometheus"),
    "OTEL_GPU_METRICS": ("{enable: [a, b]}", "{", "[a"),
    "OTEL_GPU_SAMPLING": ("{fast: 2s}", "{fast: {fast: 1}}"),
}
"""Variables by name, with values that can stand in them, or nearly so."""
