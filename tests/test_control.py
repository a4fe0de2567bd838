"""The control socket: a running agent lets the GPUs go, and takes them back."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from otel_gpu.control import Control, ControlError, Reply, ask, place
from otel_gpu.worker.holding import held
from tests.running import free_port, otel_gpu, page, running, wait_for

ENERGY = "hw_energy_joules_total"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "otel-gpu.sock"


@pytest.fixture
def control(path: Path) -> Iterator[Control]:
    control = Control(path, {"greet": lambda: Reply(ok=True, text="good day")})
    yield control
    control.close()


def test_an_order_is_carried_out_and_answered(control: Control, path: Path) -> None:
    assert control
    assert ask(path, "greet", 5.0) == Reply(ok=True, text="good day")


def test_an_unknown_order_is_refused_with_those_that_there_are(
    control: Control, path: Path
) -> None:
    assert control
    assert ask(path, "dance", 5.0) == Reply(ok=False, text="no such order: there is greet")


@pytest.mark.parametrize("line", [b"\n", b"[]\n", b"\xff\n", b'{"do": []}\n', b"x" * 9000 + b"\n"])
def test_nonsense_is_answered_and_does_no_harm(control: Control, path: Path, line: bytes) -> None:
    assert control
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(line)
        assert json.loads(client.makefile().readline())["ok"] is False
    assert ask(path, "greet", 5.0).ok


def test_the_socket_is_its_owners_alone_and_goes_with_the_agent(path: Path) -> None:
    control = Control(path, {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    control.close()
    assert not path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as somebody else")
def test_strangers_get_no_answer_even_where_the_mode_lets_them_in(path: Path) -> None:
    control = Control(path, {"greet": lambda: Reply(ok=True, text="good day")})
    path.chmod(0o666)
    for folder in (path.parent, *path.parents[1:4]):
        folder.chmod(0o755)
    code = (
        "import socket, sys; c = socket.socket(socket.AF_UNIX); c.connect(sys.argv[1]);"
        'c.sendall(b\'{"do": "greet"}\\n\'); print(c.recv(99))'
    )
    asked = subprocess.run(
        ["/usr/bin/env", "python3", "-c", code, str(path)],
        user=65534,
        capture_output=True,
        text=True,
        check=False,
    )
    control.close()
    assert "good day" not in asked.stdout


def test_what_a_killed_agent_left_is_no_obstacle(path: Path) -> None:
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    control = Control(path, {"greet": lambda: Reply(ok=True, text="good day")})
    assert ask(path, "greet", 5.0).ok
    control.close()


def test_a_second_agent_leaves_the_first_ones_socket_alone(control: Control, path: Path) -> None:
    assert control
    second = Control(path, {})
    second.close()
    assert ask(path, "greet", 5.0).ok


def test_where_no_socket_can_be_made_the_agent_goes_without(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    Control(file / "otel-gpu.sock", {}).close()


def test_who_asks_where_no_agent_is_gets_told(tmp_path: Path) -> None:
    with pytest.raises(ControlError, match="Is the agent running here"):
        ask(tmp_path / "otel-gpu.sock", "greet", 1.0)


def test_its_place_is_the_users_runtime_directory_or_run() -> None:
    assert place({"XDG_RUNTIME_DIR": "/run/user/7"}) == Path("/run/user/7/otel-gpu.sock")
    assert place({}) == Path("/run/otel-gpu/control.sock")


def test_open_device_files_are_found(tmp_path: Path) -> None:
    handles = tmp_path / "7" / "fd"
    handles.mkdir(parents=True)
    for number, target in enumerate(
        ["/dev/null", "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia0"]
    ):
        (handles / f"{number}").symlink_to(target)
    assert held([7, 8], proc=tmp_path) == {7: ["/dev/nvidia0", "/dev/nvidiactl"]}


def energy(port: int) -> dict[str, float]:
    return {
        sample.labels["hw_id"]: sample.value
        for family in text_string_to_metric_families(page(port))
        for sample in family.samples
        if sample.name == ENERGY
    }


def workers(pid: int) -> list[str]:
    return [
        child
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text(encoding="ascii").split()
    ]


def test_quiesce_ends_the_worker_and_resume_goes_on_with_every_counter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    port = free_port()
    file = tmp_path / "agent.json"
    part = {"prometheus": {"address": f"127.0.0.1:{port}"}}
    file.write_text(
        json.dumps({"version": 1, "backend": "simulated:h200x8,gpus=2", "pipeline": [part]}),
        encoding="utf-8",
    )
    with running("run", "--config", str(file)) as agent:
        wait_for(lambda: len(energy(port)) == 2, "first sweep")
        before = energy(port)

        asked = otel_gpu("quiesce")
        assert (asked.returncode, asked.stderr) == (0, "")
        assert "no device file open" in asked.stdout
        assert not workers(agent.pid)
        assert not energy(port)
        released = json.loads(page(port, "/debug/status"))
        assert "otel-gpu resume" in released["driver"]["trouble"]
        assert page(port, "/healthz") == page(port, "/readyz") == "ok\n"
        assert otel_gpu("quiesce").returncode == 0  # once more does no harm

        assert otel_gpu("resume").returncode == 0
        wait_for(lambda: len(energy(port)) == 2, "readings again")
        assert all(energy(port)[uuid] >= joules for uuid, joules in before.items())
        status = json.loads(page(port, "/debug/status"))["driver"]
        assert sum(status["restarts"].values()) == 0  # it was asked for, so it is no fault
    gone = otel_gpu("quiesce")
    assert gone.returncode == 1
    assert "Is the agent running here" in gone.stderr
