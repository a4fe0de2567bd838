"""Pods by UID, as the directories of their logs are called."""

from pathlib import Path

from otel_gpu.attribution.kubernetes.names import names


def test_a_directory_tells_namespace_name_and_uid(tmp_path: Path) -> None:
    (tmp_path / "research_train-0_7f6c1d2e-0000-4000-8000-000000000001").mkdir()
    (tmp_path / "kube-system_kube-proxy-x.y_0123456789abcdef0123456789abcdef").mkdir()
    assert names(tmp_path) == {
        "7f6c1d2e-0000-4000-8000-000000000001": ("research", "train-0"),
        "0123456789abcdef0123456789abcdef": ("kube-system", "kube-proxy-x.y"),
    }


def test_what_is_called_otherwise_is_left_out(tmp_path: Path) -> None:
    for name in ("lost+found", "a_b", "a_b_c_d"):
        (tmp_path / name).mkdir()
    assert names(tmp_path) == {}


def test_without_the_directory_nothing_is_known(tmp_path: Path) -> None:
    assert names(tmp_path / "none") == {}
