"""What otel-gpu raises on purpose."""

from __future__ import annotations


class OtelGpuError(Exception):
    """Anything that otel-gpu raises on purpose."""


class ConfigError(OtelGpuError):
    """The configuration has faults; the message lists all of them, one a line."""


class BackendError(OtelGpuError):
    """The driver cannot be used: the NVML code, what was tried, and what to do about it."""

    def __init__(self, code: int, text: str, remedy: str = "") -> None:
        super().__init__(f"{text}. {remedy}" if remedy else text)
        self.code, self.text, self.remedy = code, text, remedy
