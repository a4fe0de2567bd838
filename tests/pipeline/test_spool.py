"""A directory keeps batches over the end of an agent, whatever that end was."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from otel_gpu.model import ConfigError
from otel_gpu.pipeline.batch import Batch
from otel_gpu.pipeline.record import TornError
from otel_gpu.pipeline.spool import Filed, Spool


def batch(name: str, points: int = 10) -> Batch:
    return Batch(name.encode(), points, 1_700_000_000_000_000_000)


def left_in(directory: Path) -> list[bytes]:
    """Give the bodies that a new agent finds."""
    spool = Spool(directory)
    bodies = [spool.read(filed).body for filed in spool.left]
    spool.close()
    return bodies


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.batch*"))


def test_what_was_written_is_left_to_the_next_agent_in_order(tmp_path: Path) -> None:
    first = Spool(tmp_path / "queue")
    kept = [first.write(batch(name)) for name in "abc"]
    first.remove(kept[1])
    first.close()

    second = Spool(tmp_path / "queue")
    assert second.left == [kept[0], kept[2]]
    second.write(batch("d"))
    second.close()

    assert left_in(tmp_path / "queue") == [b"a", b"c", b"d"]


def test_the_points_and_the_time_are_known_without_reading(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    filed = spool.write(batch("a", points=7))
    spool.close()

    (tmp_path / filed.name).chmod(0)
    (found,) = Spool(tmp_path).left
    assert (found.points, found.collected_ns) == (7, 1_700_000_000_000_000_000)
    assert found.size_bytes == (tmp_path / filed.name).stat().st_size


def test_only_the_agents_user_can_read(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "new" / "queue")
    spool.write(batch("secret"))

    modes = {stat.S_IMODE(path.stat().st_mode) for path in spool.directory.iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE(spool.directory.stat().st_mode) == 0o700


def test_a_directory_that_others_can_enter_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o755)
    Spool(tmp_path).close()
    assert f"{tmp_path} can be entered by other users" in caplog.text


def test_a_second_agent_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    first = Spool(tmp_path)

    with pytest.raises(ConfigError, match=rf"in use by another agent \(process {os.getpid()}\)"):
        Spool(tmp_path)

    first.close()
    Spool(tmp_path).close()


def test_an_agent_that_was_killed_holds_the_directory_no_more(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from otel_gpu.pipeline.spool import Spool;"
        "spool = Spool(Path(sys.argv[1])); print('locked', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE
    ) as agent:
        assert agent.stdout
        assert agent.stdout.readline() == b"locked\n"
        with pytest.raises(ConfigError, match=str(agent.pid)):
            Spool(tmp_path)
        agent.kill()

    Spool(tmp_path).close()


def test_what_a_killed_agent_left_half_written_is_removed(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    filed = spool.write(batch("a"))
    spool.close()
    (tmp_path / f"{filed.name}.half").write_bytes(b"otelgpuq")

    assert left_in(tmp_path) == [b"a"]
    assert [path.name for path in files(tmp_path)] == [filed.name]


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "x.batch").write_text("mine too")

    assert left_in(tmp_path) == []
    assert (tmp_path / "notes.txt").exists()
    assert (tmp_path / "x.batch").exists()


@pytest.mark.parametrize("content", [b"", b"otelgpuq", b"\0" * 200])
def test_a_torn_record_is_told_when_it_is_read(tmp_path: Path, content: bytes) -> None:
    spool = Spool(tmp_path)
    filed = spool.write(batch("a"))
    (tmp_path / filed.name).write_bytes(content)

    with pytest.raises(TornError):
        spool.read(filed)


def test_a_record_that_somebody_removed_is_torn(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    filed = spool.write(batch("a"))
    (tmp_path / filed.name).unlink()

    with pytest.raises(TornError, match="is gone"):
        spool.read(filed)
    spool.remove(filed)  # which is no error


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path) -> None:
    """With a limit on the size of files, which also holds for root."""
    script = """
import resource, signal, sys
from pathlib import Path
from otel_gpu.pipeline.batch import Batch
from otel_gpu.pipeline.spool import Spool
spool = Spool(Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
spool.write(Batch(b"small", 1, 1))
try:
    spool.write(Batch(b"x" * 1000, 1, 2))
except OSError as error:
    print(error.strerror)
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == "File too large\n"
    assert left_in(tmp_path) == [b"small"]
    assert len(files(tmp_path)) == 1


def test_a_newer_format_is_refused_and_nothing_is_deleted(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.write(batch("a"))
    spool.close()
    (tmp_path / "format").write_text("2\n")

    with pytest.raises(ConfigError, match=r"was written in format 2, and this version .* knows 1"):
        Spool(tmp_path)

    assert len(files(tmp_path)) == 1
    (tmp_path / "format").write_text("1\n")
    assert left_in(tmp_path) == [b"a"]


def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=r"^pipeline.otlp.queue.directory: .*file"):
        Spool(tmp_path / "file")


def test_the_order_of_names_is_the_order_of_writing_even_if_the_clock_goes_back(
    tmp_path: Path,
) -> None:
    spool = Spool(tmp_path)
    written = [spool.write(Batch(b"x", 1, time_ns)) for time_ns in (10**18, 5, 10**17)]
    spool.close()

    assert Spool(tmp_path).left == written
    assert all(isinstance(filed, Filed) for filed in written)
