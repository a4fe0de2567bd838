"""Why an export failed: the official exporters say so only in their log, at each attempt."""

from __future__ import annotations

import re
from collections.abc import Sequence

from otel_gpu.pipeline.failure import ExportError

_CODE = re.compile(r"StatusCode\.(\w+)")
_RETRY = re.compile(r",? retrying in [\d.]+s\b\.?")


def explained(said: Sequence[str]) -> ExportError:
    """Make an error of what was said: its kind is the gRPC status, or `_OTHER`.

    The last but one sentence names the cause, where the last says that it gave up.
    """
    code = _CODE.search(" ".join(said))
    text = _RETRY.sub("", said[-2:][0]) if said else "the exporter gave no reason"
    return ExportError(code[1] if code else "_OTHER", text)
