"""What stands between a user and a reading: evidence and remedy, within 15 seconds.

`facts/` is what was seen of the machine, `probing.py` what the driver did when it was opened,
`rules/` the numbered catalogue and the judgement, `report.py` and `text.py` the outcome. Whatever
may hang is done in another process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from otel_gpu.doctor.facts import gather
from otel_gpu.doctor.finding import Entry, Finding, Severity
from otel_gpu.doctor.probing import everything, probe
from otel_gpu.doctor.report import Report, versions
from otel_gpu.doctor.rules import CATALOGUE, judge
from otel_gpu.doctor.text import lines, markdown
from otel_gpu.model import Metric

LIMIT_S = 15.0
LEAVING_S = 4.0  # what it takes at most to be rid of a worker that does not end
CALL_SHARE = 0.2  # of the limit: longer than that, and a call hangs

__all__ = ["CATALOGUE", "Entry", "Finding", "Report", "Severity", "examine", "lines", "markdown"]


def examine(
    backend: str,
    root: Path = Path("/"),
    environ: Mapping[str, str] = os.environ,
    *,
    metrics: Sequence[Metric] | None = None,
    limit_s: float = LIMIT_S,
) -> Report:
    """Examine this machine and its driver; never raises for what it finds, ends within the limit.

    `backend` is `open_backend`'s name; with another than `nvml` the machine is not judged. Files
    are read under `root`. `metrics` are those of the matrix; default is the catalog's full profile.
    """
    until_s = time.monotonic() + limit_s - LEAVING_S
    facts = gather(backend, root, environ)
    asked = everything() if metrics is None else metrics
    opening = probe(backend, asked, until_s, limit_s * CALL_SHARE)
    facts = replace(facts, opening=opening)
    return Report(judge(facts), facts, opening.matrix, versions(facts))
