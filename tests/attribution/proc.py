"""A /proc for tests: processes, and the cgroups that they are in."""

from pathlib import Path

POD = "/kubepods.slice/kubepods-pod{}.slice/cri-containerd-{}.scope"


class Proc:
    """Makes /proc/PID/cgroup under a directory. A container's id is its process' pid repeated."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def put(self, pid: int, path: str) -> None:
        """Let a process be in a cgroup of version 2."""
        directory = self.path / str(pid)
        directory.mkdir(exist_ok=True)
        (directory / "cgroup").write_text(f"0::{path}\n", encoding="ascii")

    def in_pod(self, pid: int, uid: str) -> None:
        self.put(pid, POD.format(uid.replace("-", "_"), container_id(pid)))

    def in_container(self, pid: int) -> None:
        self.put(pid, f"/system.slice/docker-{container_id(pid)}.scope")

    def in_job(self, pid: int, job: str) -> None:
        self.put(pid, f"/system.slice/slurmstepd.scope/job_{job}/step_0/user/task_0")

    def outside(self, pid: int) -> None:
        self.put(pid, "/user.slice/user-1000.slice/session-3.scope")


def container_id(pid: int) -> str:
    return (str(pid) * 64)[:64]
