"""Every key has a name, a variable, a default and a meaning."""

from __future__ import annotations

from otel_gpu.config import Settings, keys


def test_every_key_has_a_meaning_in_a_sentence() -> None:
    for key in keys():
        assert key.description.endswith("."), key.name
        assert len(key.description) > 10, key.name


def test_names_and_variables_are_unique() -> None:
    assert len({key.name for key in keys()}) == len(keys())
    assert len({key.variable for key in keys()}) == len(keys())


def test_options_of_parts_go_by_the_part_s_name() -> None:
    (key,) = [each for each in keys() if each.name == "pipeline.otlp.queue.max_bytes"]
    assert key.variable == "OTEL_GPU_PIPELINE__OTLP__QUEUE__MAX_BYTES"
    assert (key.default, key.required, key.holds) == ("64MiB", False, "value")


def test_only_a_file_to_write_must_be_named() -> None:
    assert [key.name for key in keys() if key.required] == ["pipeline.file.path"]


def test_keys_hold_a_value_a_collection_or_keys() -> None:
    holds = {key.name: key.holds for key in keys()}
    assert holds["sampling"] == holds["pipeline"] == holds["pipeline.otlp.tls"] == "section"
    assert holds["metrics.enable"] == holds["gpus.include"] == "collection"
    assert holds["resource.attributes"] == holds["pipeline.prometheus.names"] == "collection"
    assert holds["backend"] == holds["attribution.static"] == "value"


def test_sections_come_before_what_they_hold_in_the_order_of_the_file() -> None:
    names = [key.name for key in keys()]
    assert names[0] == "version"
    assert names.index("sampling") + 1 == names.index("sampling.fast")
    assert [name for name in names if "." not in name] == list(Settings.model_fields)
