"""The catalog is sound, each fault is found, and a configuration selects what it names."""

from dataclasses import replace

import pytest

from otel_gpu.catalog import CATALOG, FAMILIES
from otel_gpu.catalog.census import faults, select
from otel_gpu.catalog.reading import call, field, split
from otel_gpu.model import Kind, Metric, Profile

SOUND = Metric(
    name="nvidia.gpu.example.temperature",
    kind=Kind.GAUGE,
    unit="Cel",
    brief="Temperature of `hw.id`, at 1.5 m.",
    read=call("nvmlDeviceGetExample"),
)


def names(
    profile: Profile, enable: tuple[str, ...] = (), disable: tuple[str, ...] = ()
) -> set[str]:
    return {metric.name for metric in select(CATALOG, profile, enable, disable)}


def test_the_catalog_has_no_faults() -> None:
    assert faults(CATALOG) == []


def test_a_sound_record_has_no_faults() -> None:
    assert faults([SOUND]) == []


def test_every_family_is_part_of_the_catalog() -> None:
    assert sum(map(len, FAMILIES.values())) == len(CATALOG)


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (replace(SOUND, name="nvidia.gpu.Example"), "lower case words with dots"),
        (replace(SOUND, name="nvidia.gpu.example-temperature"), "lower case words with dots"),
        (replace(SOUND, name="gpu.temperature"), "is in none of"),
        (replace(SOUND, unit="MHz"), "the unit is not one of ours: 'MHz'"),
        (replace(SOUND, unit="%"), "the unit is not one of ours: '%'"),
        (replace(SOUND, brief="Temperature"), "not one sentence"),
        (replace(SOUND, brief="Temperature. Always there."), "not one sentence"),
        (replace(SOUND, brief=""), "not one sentence"),
        (replace(SOUND, typical=(90.0, 30.0)), "upside down"),
        (replace(SOUND, kind=Kind.COUNTER, typical=(-1.0, 1.0)), "negative typical growth"),
        (replace(SOUND, attributes=("a", "a")), "an attribute is declared twice"),
        (replace(SOUND, attributes=("a",), constant=(("a", 1),)), "an attribute is declared twice"),
    ],
)
def test_each_fault_is_found_and_names_the_metric(broken: Metric, fault: str) -> None:
    (found,) = faults([broken])
    assert found.startswith(f"{broken.name}: ")
    assert fault in found


def test_a_name_that_is_there_twice_is_found_once() -> None:
    assert faults([SOUND, SOUND]) == [f"{SOUND.name}: is there 2 times"]


def test_all_faults_of_all_records_are_listed() -> None:
    broken = [replace(SOUND, unit="K", brief="No"), replace(SOUND, name="x.y")]
    assert len(faults(broken)) == 3


def test_a_larger_profile_only_adds() -> None:
    core, standard, full = (
        names(profile) for profile in (Profile.CORE, Profile.STANDARD, Profile.FULL)
    )
    assert core < standard < full


def test_core_has_what_every_dashboard_needs() -> None:
    needed = {"hw.gpu.utilization", "hw.gpu.memory.usage", "hw.power", "hw.temperature"}
    assert needed <= names(Profile.CORE)


def test_a_profile_narrows_a_metric_to_its_own_parts() -> None:
    (core,) = (m for m in select(CATALOG, Profile.CORE) if m.name == "hw.gpu.utilization")
    (full,) = (m for m in select(CATALOG, Profile.FULL) if m.name == "hw.gpu.utilization")
    assert [query.call for query in core.read.queries] == ["nvmlDeviceGetUtilizationRates"]
    assert len(full.read.queries) == 5


def test_a_metric_of_which_a_profile_includes_no_part_is_left_out() -> None:
    whole = split("a", {"x": field(1, profile=Profile.FULL), "y": field(2, profile=Profile.FULL)})
    assert select([replace(SOUND, read=whole)], Profile.STANDARD) == ()


def test_enabled_by_name_a_metric_is_whole_and_needs_no_profile() -> None:
    off = replace(SOUND, profile=Profile.OFF)
    assert select([off], Profile.FULL) == ()
    assert select([off], Profile.CORE, enable=[SOUND.name]) == (off,)
    (whole,) = (
        metric
        for metric in select(CATALOG, Profile.CORE, enable=["hw.gpu.utilization"])
        if metric.name == "hw.gpu.utilization"
    )
    assert len(whole.read.queries) == 5


def test_globs_enable_and_disable_and_disabling_wins() -> None:
    assert "nvidia.gpu.bar1.usage" in names(Profile.CORE, enable=("nvidia.gpu.bar1.*",))
    assert not {name for name in names(Profile.FULL, disable=("hw.*",)) if name.startswith("hw.")}
    assert "hw.power" not in names(Profile.CORE, enable=("hw.power",), disable=("hw.power",))
