"""Owners from a file: what it says, what is wrong with it, and what holds meanwhile."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from otel_gpu.attribution import Owners, View
from otel_gpu.attribution.static import StaticSource
from otel_gpu.model import Device, Owner
from tests.machine import gpu, instance

GPUS = [gpu(0), gpu(1)]
POD = Owner((("k8s.pod.name", "train-0"),), (("k8s.pod.uid", "7f6c"),))
GOOD = """
- gpu: GPU-0
  attributes: {k8s.pod.name: train-0}
  resource: {k8s.pod.uid: 7f6c}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "owners.yaml"


def asked(path: Path, text: str, devices: Sequence[Device] = GPUS) -> Owners:
    path.write_text(text, encoding="utf-8")
    source = StaticSource(path)
    owners = source.claims(View(devices)).owners
    assert source.health().up, source.health().detail
    return owners


class TestOwners:
    def test_a_gpu_has_the_owner_that_the_file_gives_it(self, path: Path) -> None:
        assert asked(path, GOOD) == {"GPU-0": (POD,)}

    @pytest.mark.parametrize(
        "name",
        ["GPU-1", "1", '"1"', '"0000:3c:00.0"', "0000:3C:00.0", "00000000:3C:00.0"],
    )
    def test_a_gpu_is_named_by_uuid_index_or_pci_address(self, path: Path, name: str) -> None:
        assert set(asked(path, f"- {{gpu: {name}, attributes: {{a: b}}}}")) == {"GPU-1"}

    def test_named_several_times_it_has_several_owners(self, path: Path) -> None:
        text = "- {gpu: 0, attributes: {a: x}}\n- {gpu: GPU-0, attributes: {a: y}}\n"
        assert asked(path, text)["GPU-0"] == (Owner((("a", "x"),)), Owner((("a", "y"),)))

    def test_the_owner_of_a_gpu_owns_its_instances_and_not_the_other_way_round(
        self, path: Path
    ) -> None:
        devices = [gpu(0), instance(gpu(0), 1), instance(gpu(0), 2), gpu(1)]
        for name in ("GPU-0", "0", "0000:3b:00.0"):
            found = asked(path, f"- {{gpu: {name}, attributes: {{a: b}}}}", devices)
            assert set(found) == {"GPU-0", "MIG-0-1", "MIG-0-2"}
        found = asked(path, "- {gpu: MIG-0-2, attributes: {a: b}}", devices)
        assert set(found) == {"MIG-0-2"}

    def test_values_keep_their_types(self, path: Path) -> None:
        text = "- {gpu: 0, attributes: {id: 17, name: ada, spot: true, word: '17'}}"
        (owner,) = asked(path, text)["GPU-0"]
        assert [(key, value, type(value)) for key, value in owner.attributes] == [
            ("id", 17, int),
            ("name", "ada", str),
            ("spot", True, bool),
            ("word", "17", str),
        ]

    @pytest.mark.parametrize("text", ["", "[]", "# nobody\n"])
    def test_a_file_that_names_nobody_gives_nobody(self, path: Path, text: str) -> None:
        assert asked(path, text) == {}

    def test_a_gpu_that_is_not_here_is_no_fault(self, path: Path) -> None:
        assert asked(path, "- {gpu: GPU-7, attributes: {a: b}}") == {}


class TestFaults:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("gpu: GPU-0", "the file: Input should be a valid list"),
            ("- {attributes: {a: b}}", "0.gpu: Field required"),
            ("- {gpu: GPU-0}", "0.attributes: Field required"),
            ("- {gpu: GPU-0, attributes: {a: b}, owner: me}", "0.owner: Extra inputs"),
            ("- {gpu: GPU-0, attributes: {a: 1.5}}", "0.attributes.a"),
            ("- {gpu: GPU-0, attributes: [a]}", "0.attributes: Input should be a valid dictionary"),
            ("- {gpu: GPU 0, attributes: {a: b}}", "0.gpu: is not a GPU: give its index, UUID"),
            ("- {gpu: true, attributes: {a: b}}", "0.gpu: is not a GPU"),
            ("- {gpu: 0, attributes: {a: b}}\n- {gpu: '', attributes: {a: b}}", "1.gpu: is not"),
            # YAML reads an address of digits only as minutes and seconds: 60.0
            ("- {gpu: 0000:01:00.0, attributes: {a: b}}", "0.gpu: is not a GPU"),
            ("- {gpu: GPU-0, attributes: {a: b}", "expected"),
            ("- gpu: 2001-02-31", "day is out of range for month"),
            ("- {gpu: \x07}", "special characters are not allowed"),
        ],
    )
    def test_each_fault_is_one_line_with_the_place(self, path: Path, text: str, words: str) -> None:
        path.write_text(text, encoding="utf-8")
        source = StaticSource(path)
        assert source.claims(View(GPUS)).owners == {}
        health = source.health()
        assert (health.name, health.up, health.reason) == ("static", False, "invalid")
        assert health.detail.startswith(f"{path}: ")
        assert words in health.detail
        assert "\n" not in health.detail

    def test_bytes_that_are_no_text_are_a_fault(self, path: Path) -> None:
        path.write_bytes(b"- {gpu: \xff}")
        source = StaticSource(path)
        assert source.claims(View(GPUS)).owners == {}
        assert source.health().reason == "invalid"

    def test_a_file_that_is_not_there_is_said(self, path: Path) -> None:
        source = StaticSource(path)
        assert source.claims(View(GPUS)).owners == {}
        assert source.health()[:4] == (
            "static",
            False,
            "unreadable",
            f"{path}: No such file or directory",
        )

    def test_a_directory_is_no_file(self, tmp_path: Path) -> None:
        source = StaticSource(tmp_path)
        assert source.claims(View(GPUS)).owners == {}
        assert source.health().detail == f"{tmp_path}: is not a file"

    def test_before_it_was_read_it_is_not_up(self, path: Path) -> None:
        health = StaticSource(path).health()
        assert (health.up, health.reason) == (False, "unread")


class TestChange:
    def test_it_is_read_again_when_it_changed(self, path: Path) -> None:
        path.write_text(GOOD, encoding="utf-8")
        source = StaticSource(path)
        assert source.claims(View(GPUS)).owners == {"GPU-0": (POD,)}
        path.write_text(GOOD.replace("GPU-0", "GPU-1"), encoding="utf-8")
        stamp = path.stat().st_mtime_ns + 1_000_000
        os.utime(path, ns=(stamp, stamp))
        assert source.claims(View(GPUS)).owners == {"GPU-1": (POD,)}

    def test_it_is_read_again_when_another_file_took_its_place(self, path: Path) -> None:
        """As a ConfigMap changes: the name leads to another file, which may be older."""
        path.write_text(GOOD, encoding="utf-8")
        source = StaticSource(path)
        source.claims(View(GPUS))
        other = path.with_name("other.yaml")
        other.write_text(GOOD.replace("GPU-0", "GPU-1"), encoding="utf-8")
        status = path.stat()
        os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
        other.replace(path)
        assert source.claims(View(GPUS)).owners == {"GPU-1": (POD,)}

    def test_unchanged_it_is_not_read_again(self, path: Path) -> None:
        path.write_text(GOOD, encoding="utf-8")
        source = StaticSource(path)
        source.claims(View(GPUS))
        status = path.stat()
        path.write_text(GOOD.replace("GPU-0", "GPU-1"), encoding="utf-8")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert source.claims(View(GPUS)).owners == {"GPU-0": (POD,)}

    def test_while_it_cannot_be_read_the_last_answer_is_kept_and_said_to_be_old(
        self, path: Path
    ) -> None:
        path.write_text(GOOD, encoding="utf-8")
        source = StaticSource(path)
        source.claims(View(GPUS))
        for break_it, reason in (
            (path.unlink, "unreadable"),
            (lambda: path.write_text("{"), "invalid"),
        ):
            break_it()
            assert source.claims(View(GPUS)).owners == {"GPU-0": (POD,)}
            assert (source.health().up, source.health().reason) == (False, reason)
        path.write_text("[]", encoding="utf-8")
        assert source.claims(View(GPUS)).owners == {}
        assert source.health().up


class TestBounds:
    def told(self, path: Path) -> str:
        source = StaticSource(path)
        assert source.claims(View(GPUS)).owners == {}
        assert source.health().reason == "invalid"
        return source.health().detail

    def test_a_file_that_is_too_large_is_not_read(self, path: Path) -> None:
        with path.open("wb") as file:
            file.truncate((4 << 20) + 1)
        assert self.told(path).endswith("is over 4 MiB")

    def test_a_pipe_in_its_place_is_not_waited_for(self, path: Path) -> None:
        os.mkfifo(path)
        assert self.told(path).endswith("is not a file")

    def test_aliases_that_would_fill_the_memory_are_refused(self, path: Path) -> None:
        path.write_text("- &a {gpu: 0, attributes: {a: b}}\n- *a\n", encoding="utf-8")
        assert "alias" in self.told(path)
