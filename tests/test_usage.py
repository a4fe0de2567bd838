"""What a process uses, of a process whose use is known and of one that is gone."""

import os
import subprocess
import sys
from pathlib import Path

from otel_gpu.usage import usage


def test_it_is_what_the_process_itself_says() -> None:
    used = usage(os.getpid())
    assert used is not None
    assert abs(used.cpu_s - sum(os.times()[:2])) < 0.5
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    status = dict(line.split(":", 1) for line in lines)
    resident = int(status["VmRSS"].split()[0]) * 1024
    assert 0.5 * resident < used.rss_bytes < 2 * resident


def test_a_name_with_blanks_and_parentheses_is_no_obstacle(tmp_path: Path) -> None:
    program = tmp_path / ") 1 (x) R"
    program.symlink_to(sys.executable)
    with subprocess.Popen(
        [program, "-I", "-S", "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii")
        used = usage(process.pid)
        process.kill()
    assert "() 1 (x) R)" in stat
    assert used is not None
    assert 0 <= used.cpu_s < 60
    assert used.rss_bytes > 1_000_000


def test_of_a_process_that_is_gone_there_is_nothing_to_say() -> None:
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
    process.wait()
    assert usage(process.pid) is None
