"""What the fixtures of this room give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from otel_gpu.config import Loaded, Settings

Environ = Mapping[str, str]
Write = Callable[[str], Path]
Load = Callable[..., Loaded]
Give = Callable[..., Settings]
Faults = Callable[..., list[str]]
