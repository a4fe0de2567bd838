from __future__ import annotations

import sys
from pathlib import Path

from otel_gpu.doctor.facts.packages import Package, Packages, look_at_packages


def install(site: Path, name: str, version: str, *files: str, listed: bool = True) -> None:
    """Install a distribution as pip does: files, metadata and a list of both."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for file in files:
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text("")
    if listed:
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def test_an_environment_with_nothing_has_nothing(tmp_path: Path) -> None:
    assert look_at_packages([str(tmp_path)]) == Packages()


def test_nvidia_s_own_binding_is_found_with_its_module(tmp_path: Path) -> None:
    install(tmp_path, "nvidia-ml-py", "13.615.71", "pynvml.py")
    packages = look_at_packages([str(tmp_path)])
    assert packages.bindings == (Package("nvidia-ml-py", "13.615.71", brings_module=True),)
    assert packages.module == packages.home == str(tmp_path.resolve() / "pynvml.py")
    assert packages.versions == {"nvidia-ml-py": "13.615.71"}


def test_the_old_pynvml_package_wins_over_the_module(tmp_path: Path) -> None:
    install(tmp_path, "nvidia-ml-py", "13.615.71", "pynvml.py")
    install(tmp_path, "pynvml", "11.5.3", "pynvml/__init__.py", "pynvml/nvml.py")
    packages = look_at_packages([str(tmp_path)])
    assert packages.bindings[1] == Package("pynvml", "11.5.3", brings_module=True)
    assert packages.module == str(tmp_path.resolve() / "pynvml/__init__.py")


def test_the_new_pynvml_distribution_brings_no_module(tmp_path: Path) -> None:
    install(tmp_path, "pynvml", "13.0.1", "pynvml_utils/__init__.py", "_pynvml_redirector.py")
    assert look_at_packages([str(tmp_path)]).bindings == (
        Package("pynvml", "13.0.1", brings_module=False),
    )


def test_a_distribution_without_a_list_of_files_is_unknown(tmp_path: Path) -> None:
    install(tmp_path, "nvidia-ml-py3", "7.352.0", "pynvml.py", listed=False)
    (package,) = look_at_packages([str(tmp_path)]).bindings
    assert package.brings_module is None


def test_this_very_environment_has_the_binding_without_importing_it() -> None:
    before = set(sys.modules)
    packages = look_at_packages(sys.path)
    assert packages.module == packages.home
    assert "pynvml" not in set(sys.modules) - before
