from __future__ import annotations

import re
from dataclasses import replace
from errno import EACCES, ENOENT, EPERM
from graphlib import TopologicalSorter

from hypothesis import given, settings
from hypothesis import strategies as st

from otel_gpu.doctor.facts import Facts
from otel_gpu.doctor.facts.elf import DANGLING, EMPTY
from otel_gpu.doctor.facts.library import Attempt, Candidate, Library, Origin
from otel_gpu.doctor.facts.module import Module, PciGpu
from otel_gpu.doctor.facts.nodes import Node, Nodes
from otel_gpu.doctor.facts.opening import Opening, Trouble
from otel_gpu.doctor.facts.packages import Package, Packages
from otel_gpu.doctor.facts.process import Namespace, Process
from otel_gpu.doctor.finding import Severity
from otel_gpu.doctor.rules import CATALOGUE, ROOMS, judge, reasons
from otel_gpu.model import Refused, System
from tests.doctor.cases import GPUS, HEALTHY, ids, shut

ENTRIES = [entry for entries, _ in ROOMS.values() for entry in entries]

CANDIDATES = st.builds(
    Candidate,
    path=st.sampled_from(["/a/libnvidia-ml.so.1", "/a/stubs/libnvidia-ml.so.1", "/a/other"]),
    origin=st.sampled_from(Origin),
    real=st.sampled_from(["/a/libnvidia-ml.so.580.1", "/a/stubs/libnvidia-ml.so"]),
    version=st.sampled_from(["", "580.1", "570.2"]),
    fault=st.sampled_from(["", EMPTY, DANGLING]),
)
NODES = st.builds(
    Node,
    name=st.sampled_from(["nvidiactl", "nvidia0", "nvidia1"]),
    errno=st.sampled_from([0, EACCES, EPERM, ENOENT]),
    is_device=st.booleans(),
    mode=st.sampled_from([0o666, 0o600, 0]),
    uid=st.sampled_from([0, 1000]),
    gid=st.sampled_from([0, 1000]),
)
SYSTEMS = st.builds(
    System,
    devices=st.sampled_from([(), GPUS, GPUS[:1]]),
    refused=st.lists(
        st.builds(Refused, st.integers(0, 7), st.sampled_from([4, 15, 16, 999, 8]))
    ).map(tuple),
)
MACHINES = st.builds(
    Facts,
    backend=st.sampled_from(["nvml", "simulated"]),
    library=st.builds(
        Library,
        st.lists(CANDIDATES, max_size=3).map(tuple),
        st.sampled_from([None, Attempt(loaded="/a/libnvidia-ml.so.1"), Attempt(refused="no")]),
    ),
    nodes=st.builds(Nodes, NODES, st.lists(NODES, max_size=2).map(tuple)),
    module=st.builds(
        Module,
        is_loaded=st.sampled_from([None, True, False]),
        version=st.sampled_from(["", "580.1", "570.2"]),
        params=st.sampled_from([{}, {"RmProfilingAdminOnly": "1", "ModifyDeviceFiles": "0"}]),
        gpus=st.sampled_from([None, (), ("a", "b", "c")]),
        pci=st.none() | st.lists(st.builds(PciGpu, st.text()), max_size=2).map(tuple),
        is_wsl=st.booleans(),
    ),
    process=st.builds(
        Process,
        uid=st.sampled_from([0, 1000]),
        capabilities=st.integers(0, 1 << 41),
        namespace=st.builds(Namespace, st.sampled_from([None, True, False])),
    ),
    packages=st.builds(
        Packages,
        st.lists(
            st.builds(
                Package,
                st.sampled_from(["pynvml", "nvidia-ml-py"]),
                st.text(),
                st.sampled_from([None, True, False]),
            ),
            max_size=2,
        ).map(tuple),
        st.sampled_from(["", "/a", "/b"]),
        st.sampled_from(["", "/a"]),
    ),
    environment=st.dictionaries(
        st.sampled_from(["NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"]),
        st.sampled_from(["void", "compute"]),
    ),
    opening=st.builds(
        Opening,
        system=st.none() | SYSTEMS,
        trouble=st.none() | st.builds(Trouble, st.integers(0, 30), st.text()),
        hung=st.sampled_from([(), (("call", ""),), (("call", "GPU-1"),)]),
        has_died=st.booleans(),
        is_late=st.booleans(),
        matrix=st.sampled_from([HEALTHY.opening.matrix, Opening().matrix]),
    ),
)


def test_numbers_are_unique_and_grow_from_room_to_room() -> None:
    numbers = [entry.id for entry in ENTRIES]
    causal = [number for number in numbers if number < "GPU070"]
    assert all(re.fullmatch(r"GPU\d{3}", number) for number in numbers)
    assert len(set(numbers)) == len(numbers) == len(CATALOGUE)
    assert causal == sorted(causal)


def test_every_entry_says_all_that_a_reader_needs_in_whole_sentences() -> None:
    for entry in ENTRIES:
        assert entry.title
        assert not entry.title.endswith("."), entry.id
        assert entry.meaning.endswith("."), entry.id
        assert entry.remedy.endswith("."), entry.id
        assert entry.anchor == f"docs/troubleshooting.md#{entry.id.lower()}"


def test_causes_are_entries_and_nothing_causes_itself() -> None:
    TopologicalSorter({entry.id: entry.follows for entry in ENTRIES}).prepare()
    assert all(set(entry.follows) <= set(CATALOGUE) for entry in ENTRIES)


def test_a_cause_is_at_least_as_grave_so_that_its_remedy_is_read_first() -> None:
    ranks = {entry.id: list(Severity).index(entry.severity) for entry in ENTRIES}
    for entry in ENTRIES:
        assert all(ranks[cause] <= ranks[entry.id] for cause in entry.follows), entry.id


def test_a_healthy_machine_has_no_finding() -> None:
    assert judge(HEALTHY) == ()


def test_a_machine_without_a_driver_is_told_of_the_library_first() -> None:
    bare = shut(12, facts=Facts(module=Module(is_loaded=False, pci=()), packages=HEALTHY.packages))
    assert ids(judge(bare)) == ["GPU003", "GPU033", "GPU030", "GPU020", "GPU040"]


def test_a_finding_that_explains_another_stands_before_it() -> None:
    environment = {"NVIDIA_DRIVER_CAPABILITIES": "compute"}
    facts = replace(shut(12), library=Library(), environment=environment)
    assert ids(judge(facts)) == ["GPU002", "GPU003", "GPU040"]


@settings(max_examples=60)
@given(MACHINES)
def test_whatever_the_facts_the_judgement_stands_in_order(facts: Facts) -> None:
    findings = judge(facts)
    ranks = [list(Severity).index(CATALOGUE[one.id].severity) for one in findings]
    assert ranks == sorted(ranks)
    assert len(set(ids(findings))) == len(findings)
    for place, finding in enumerate(findings):
        graver = CATALOGUE[finding.id].severity
        assert all(line for line in finding.evidence)
        assert not any(
            CATALOGUE[cause].severity is graver for cause in reasons(finding, findings[place:])
        )


@settings(max_examples=60)
@given(MACHINES)
def test_a_driver_that_is_shut_is_always_an_error(facts: Facts) -> None:
    findings = judge(facts)
    errors = [one for one in findings if CATALOGUE[one.id].severity is Severity.ERROR]
    assert errors or facts.opening.system is not None
