"""Durations, sizes, addresses and URLs: as people write them, as the agent counts them, and back.

A reader takes what YAML gave and raises ValueError with words that go on where the value ended:
"10 parsecs" + "is not a duration, such as 500ms, 15s, 1m or 2h".
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from urllib.parse import urlsplit

LONGEST = 31 * 86_400.0
"""Seconds: the longest duration. Waits beyond a month are slips, and timers overflow far above."""

LARGEST = 1 << 50
"""Bytes: the largest size, 1 PiB."""

_NUMBER = r"[0-9]{1,16}(?:\.[0-9]+)?"
_TIMES = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600)}
_TIME = re.compile(rf"({_NUMBER})(ms|s|m|h)")
_TIME_TEXT = re.compile(rf"(?:{_NUMBER}(?:ms|s|m|h))+|{_NUMBER}")
_BINARY = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_DECIMAL = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS = {unit.lower(): factor for unit, factor in {**_BINARY, **_DECIMAL}.items()}
_SIZE = re.compile(rf"({_NUMBER})\s?([A-Za-z]*)")
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%\w+)?)\]|([^\s:/\[\]@]*)):([0-9]{1,5})", re.ASCII)
_PCI = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z/-]+", re.ASCII)


def duration(value: object) -> float:
    """Read a duration, "500ms", "1m30s" or a number of seconds, as seconds."""
    seconds = _seconds(value)
    if seconds is None:
        raise ValueError("is not a duration, such as 500ms, 15s, 1m or 2h")
    if seconds > LONGEST:
        raise ValueError(f"is over the maximum of {format_duration(LONGEST)}")
    return seconds


def _seconds(value: object) -> float | None:
    number = _number(value)
    if number is not None:
        return number
    if not isinstance(value, str) or not _TIME_TEXT.fullmatch(value):
        return None
    parts = _TIME.findall(value)
    if not parts:
        return float(value)
    return float(sum((Decimal(amount) * _TIMES[unit] for amount, unit in parts), Decimal(0)))


def _number(value: object) -> float | None:
    """Give a number that can be an amount; a bool is none, though Python counts it as an int."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < math.inf else None


def format_duration(seconds: float) -> str:
    """Write seconds so that `duration` reads the very same number."""
    if seconds and seconds % 3600 == 0:
        return f"{int(seconds) // 3600}h"
    thousandths = Decimal(repr(seconds)) * 1000
    if seconds < 1 and thousandths % 1 == 0 and seconds:
        return f"{int(thousandths)}ms"
    if seconds % 1 == 0:
        return f"{int(seconds)}s"
    return f"{Decimal(repr(seconds)):f}s"


def size(value: object) -> int:
    """Read a size, "64MiB", "100MB" or a number of bytes, as bytes."""
    exact = _bytes(value)
    if exact is not None and exact > LARGEST:
        raise ValueError(f"is over the maximum of {format_size(LARGEST)}")
    if exact is None or exact % 1:
        raise ValueError("is not a size, such as 64MiB, 100MB or a whole number of bytes")
    return int(exact)


def _bytes(value: object) -> Decimal | None:
    if not isinstance(value, str):
        number = _number(value)
        return None if number is None else Decimal(number)
    match = _SIZE.fullmatch(value)
    factor = _UNITS.get((match[2] or "B").lower()) if match else None
    return Decimal(match[1]) * factor if match and factor else None


def format_size(amount: int) -> str:
    """Write bytes in the unit that gives the shortest exact text."""
    units = {**_BINARY, **_DECIMAL}
    exact = [f"{amount // factor}{unit}" for unit, factor in units.items() if amount % factor == 0]
    return min(exact, key=len) if amount else "0B"


def split_address(text: str) -> tuple[str, int]:
    """Split "host:port", "[::1]:9400" or ":9400" (every address) into host and port."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ValueError("is not host:port, such as 127.0.0.1:9400, [::1]:9400 or :9400")
    if int(match[3]) > 65_535:
        raise ValueError("has a port over 65535")
    return match[1] or match[2] or "", int(match[3])


def endpoint(text: str) -> str:
    """Check that OTLP can be sent there."""
    if not _is_url(text):
        raise ValueError("is not a URL, such as http://collector:4318, or host:port for grpc")
    return text


def _is_url(text: str) -> bool:
    if re.search(r"[\s\x00-\x1f\x7f]", text):  # urlsplit drops some of these without a word
        return False
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def gpu(value: object) -> int | str:
    """Read one GPU: NVML's index, a UUID (of a MIG instance too) or a PCI address.

    A PCI address is given back as sysfs writes it, 0000:3b:00.0, whatever its case and domain.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    text = value if isinstance(value, str) else ""
    if re.fullmatch("[0-9]{1,4}", text):
        return int(text)
    if _UUID.fullmatch(text):
        return text
    if match := _PCI.fullmatch(text):
        return f"{int(match[1] or '0', 16):04x}:{match[2].lower()}"
    raise ValueError("is not a GPU: give its index, UUID (GPU-...) or PCI address (0000:3b:00.0)")
