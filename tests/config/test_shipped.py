"""config/agent.yaml is what the models say, and says what they mean."""

from __future__ import annotations

from pathlib import Path

from otel_gpu.config import keys, load, shipped_yaml

SHIPPED = Path(__file__).parents[2] / "config" / "agent.yaml"


def test_the_shipped_file_is_the_one_that_the_models_make() -> None:
    assert SHIPPED.read_text(encoding="utf-8") == shipped_yaml()


def test_the_shipped_file_changes_nothing() -> None:
    assert load(SHIPPED).settings == load(None).settings


def test_its_examples_work_when_they_are_uncommented(tmp_path: Path) -> None:
    blocks = shipped_yaml().split("\n\n")
    parts = [part for part in blocks if "\n  # - " in part]
    assert len(parts) == 3
    text = shipped_yaml()
    for part in parts:
        head, _, body = part.partition("  # - ")
        lines = f"  # - {body}".splitlines()
        text = text.replace(part, head + "\n".join(line.replace("# ", "", 1) for line in lines))
    path = tmp_path / "agent.yaml"
    path.write_text(text, encoding="utf-8")
    loaded = load(path)
    assert [each.name for each in loaded.settings.pipeline] == [
        "prometheus",
        "otlp",
        "file",
        "console",
    ]
    assert not loaded.warnings


def test_it_has_every_key_under_its_meaning() -> None:
    text = " ".join(shipped_yaml().replace("#", " ").split())
    for key in keys():
        assert key.description in text, key.name
        assert f"{key.path[-1]}:" in text, key.name


def test_its_lines_fit_on_a_screen() -> None:
    assert max(map(len, shipped_yaml().splitlines())) <= 100
