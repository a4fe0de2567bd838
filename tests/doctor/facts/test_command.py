from __future__ import annotations

import os
import time

from otel_gpu.doctor.facts.command import output


def test_the_output_of_a_command_is_given() -> None:
    assert output(["/bin/echo", "word"], os.environ, 5.0) == "word\n"


def test_a_command_that_fails_or_is_not_there_gives_nothing() -> None:
    assert output(["/bin/false"], os.environ, 5.0) is None
    assert output(["/nowhere/ldconfig"], os.environ, 5.0) is None


def test_a_command_that_takes_too_long_is_left_behind() -> None:
    start_s = time.monotonic()
    assert output(["/bin/sleep", "60"], os.environ, 0.1) is None
    assert time.monotonic() - start_s < 10.0
