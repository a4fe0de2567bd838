"""Runs a few lines of Python against the fake in a process of their own, with pynvml and ctypes.

The test process itself never loads the library: whoever asks for libnvidia-ml.so.1 afterwards
would get it, whatever the machine really has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from textwrap import dedent
from typing import Any

from tests.fake_nvml.machine import FakeNvml

BEFORE = """
import ctypes, json, threading, time
from ctypes import byref
from otel_gpu.backends.nvml import nvml

library = ctypes.CDLL("libnvidia-ml.so.1")

def code(function, *arguments):
    "Call a function of pynvml, and give its return code."
    try:
        function(*arguments)
    except nvml.NVMLError as error:
        return error.value
    return 0
"""
AFTER = "\nprint(json.dumps(result))\n"


def told(fake: FakeNvml, program: str) -> Any:
    """Run a program, and give what it leaves in `result`."""
    ran = subprocess.run(
        [sys.executable, "-c", BEFORE + dedent(program) + AFTER],
        env={**os.environ, **fake.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)
