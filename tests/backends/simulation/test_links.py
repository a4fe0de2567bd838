from __future__ import annotations

from itertools import pairwise

import pytest

from otel_gpu.backends.simulation.boards import B200, H200, SOUND
from otel_gpu.backends.simulation.links import FIELDS
from otel_gpu.catalog import CATALOG
from otel_gpu.catalog.nvlink import ALL_LINKS, BIT_ERROR_RATE, FABRIC, FABRIC_FAULT, LINK_STATUS
from otel_gpu.catalog.profiling import CALL as GPM
from otel_gpu.catalog.profiling import MEBI, NVLINK_RECEIVE, NVLINK_TRANSMIT
from otel_gpu.catalog.reading import FIELD
from otel_gpu.model import Answer, Code, Query
from tests.backends.box import FakeClock, gpu_uuid, one, opened, simulated, sweep, value

SENT, RECEIVED = Query(FIELD, (138, ALL_LINKS)), Query(FIELD, (139, ALL_LINKS))
OLD_ERRORS = [Query(FIELD, (number, 3)) for number in (161, 162, 163)]
NEW_ERRORS = [Query(FIELD, (number, ALL_LINKS)) for number in (*range(206, 215), 219, 221)]


def of_link(number: int, link: int) -> Query:
    return Query(FIELD, (number, link))


def test_bytes_only_grow_and_stand_still_while_nothing_runs() -> None:
    clock = FakeClock()
    backend = opened("h200x8,load=0.5", clock)
    counts = []
    for _ in range(900):
        clock.now += 1
        counts.append((value(backend, SENT), value(backend, RECEIVED)))
    grown = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(counts)]
    assert min(min(pair) for pair in grown) == 0
    assert max(grown)[0] * 1024 < 0.25 * 18 * 26_562e6
    assert all((sent > 0) == (received > 0) for sent, received in grown)
    assert all(sent != received for sent, received in grown if sent)


@pytest.mark.parametrize("box", ["h200x8", "b200x8"])
def test_the_links_add_up_to_the_sum_at_every_moment(box: str) -> None:
    clock = FakeClock()
    backend = opened(f"{box},gpus=2", clock)
    for _ in range(20):
        clock.now += 7.77
        for number in (138, 139):
            links = [value(backend, of_link(number, link)) for link in range(18)]
            assert sum(links) == value(backend, Query(FIELD, (number, ALL_LINKS)))
            assert max(links) - min(links) <= 1


def test_rates_of_gpm_are_the_growth_of_the_counters_and_their_protocol() -> None:
    clock = FakeClock()
    backend = opened("h200x8,gpus=2,load=1", clock)
    for counter, number in ((SENT, NVLINK_TRANSMIT), (RECEIVED, NVLINK_RECEIVE)):
        rate = Query(GPM, (number,))
        assert one(backend, rate) == Answer(Code.NO_DATA)
        for seconds in (1, 5, 60):
            before = value(backend, counter)
            clock.now += seconds
            mean, begin, end = value(backend, rate)
            moved = (value(backend, counter) - before) * 1024
            assert mean * MEBI * (end - begin) == pytest.approx(1.0245 * moved, rel=1e-6)


def test_a_gpu_without_peers_sends_nothing() -> None:
    backend = opened("h200x8,gpus=1,load=1")
    assert value(backend, SENT) == value(backend, RECEIVED) == 0
    divided = opened("a100-mig,load=1")
    assert value(divided, SENT) == 0


def test_every_link_is_active_at_its_generations_speed() -> None:
    for box, speed, version, links in (
        ("h200x8", 26_562, 6, 18),
        ("b200x8", 53_125, 7, 18),
        ("a100-mig", 25_000, 4, 12),
    ):
        backend = opened(box)
        assert value(backend, of_link(91, 0)) == links
        for link in range(links):
            states = [value(backend, of_link(number, link)) for number in (164, 165, 166)]
            assert states == [speed, 1, version]
        assert one(backend, of_link(164, links)).code == Code.INVALID_ARGUMENT
        assert one(backend, of_link(165, ALL_LINKS)).code == Code.INVALID_ARGUMENT


def test_errors_are_counted_as_the_generation_of_the_links_counts_them() -> None:
    older, newer = opened("h200x8"), opened("b200x8")
    assert [one(older, query) for query in OLD_ERRORS] == [Answer(0, 0)] * 3
    assert [one(newer, query) for query in NEW_ERRORS] == [Answer(0, 0)] * 11
    assert {one(newer, query).code for query in OLD_ERRORS} == {Code.NOT_SUPPORTED}
    assert {one(older, query).code for query in NEW_ERRORS} == {Code.NOT_SUPPORTED}
    assert one(older, of_link(161, 18)).code == Code.INVALID_ARGUMENT


@pytest.mark.parametrize("box", ["l4", "rtx4090", "t4", "gb10"])
def test_a_board_without_links_refuses_all_about_them(box: str) -> None:
    backend = opened(box)
    for number in FIELDS:
        assert one(backend, of_link(number, 0)) == Answer(Code.NOT_SUPPORTED)


def test_links_of_the_fifth_generation_have_measured_no_bit_errors() -> None:
    backend = simulated("b200x8")
    [device, *_] = backend.open().devices
    [(_, points, gaps)] = sweep(backend, device, [BIT_ERROR_RATE])
    assert not gaps
    assert [0 < point.value < 1e-250 for point in points] == [True, True]


def test_link_states_are_counted() -> None:
    backend = simulated("h200x8")
    [device, *_] = backend.open().devices
    [(_, points, _)] = sweep(backend, device, [LINK_STATUS])
    assert [point.value for point in points] == [0, 18, 0, 0]


def test_a_gpu_is_in_the_fabric_and_says_how_it_fares_where_that_is_checked() -> None:
    h200, b200 = value(opened("h200x8"), FABRIC), value(opened("b200x8"), FABRIC)
    assert h200["state"] == b200["state"] == 3
    assert (h200["healthMask"], h200["healthSummary"]) == (0, 0)
    assert (b200["healthMask"], b200["healthSummary"]) == (SOUND, 1)
    assert set(h200["clusterUuid"]) == {0}
    assert len(b200["clusterUuid"]) == 16
    backend = opened("b200x8")
    assert len({str(value(backend, FABRIC, gpu)) for gpu in range(8)}) == 1
    [device, *_] = simulated("b200x8").open().devices
    [(_, points, gaps)] = sweep(backend, device, [FABRIC_FAULT])
    assert not gaps
    assert {point.value for point in points} == {0}


def test_boards_without_a_fabric_refuse_it_and_an_old_library_does_not_know_it() -> None:
    assert one(opened("a100-mig"), FABRIC) == Answer(Code.NOT_SUPPORTED)
    assert one(opened("t4"), FABRIC) == Answer(Code.FUNCTION_NOT_FOUND)


def test_what_gpus_can_do_with_each_other_is_asked_of_one_and_told_of_all_others() -> None:
    backend = opened("h200x8")
    others = {gpu_uuid(backend, gpu) for gpu in range(8)} - {gpu_uuid(backend, 2)}
    for capability in range(4):
        told = value(backend, Query("nvmlDeviceGetP2PStatus", (capability,)), 2)
        assert told == dict.fromkeys(others, 0)
    for nonsense in ((), (4,), (-1,)):
        query = Query("nvmlDeviceGetP2PStatus", nonsense)
        assert one(backend, query) == Answer(Code.INVALID_ARGUMENT)


def test_boards_without_links_reach_each_other_over_pcie_and_divided_ones_not_at_all() -> None:
    for box, statuses in (("l4", [0, 0, 5, 5]), ("a100-mig", [5, 5, 5, 5])):
        backend = opened(box)
        peer = gpu_uuid(backend, 1)
        asked = [Query("nvmlDeviceGetP2PStatus", (capability,)) for capability in range(4)]
        assert [value(backend, query)[peer] for query in asked] == statuses
    assert value(opened("rtx4090"), Query("nvmlDeviceGetP2PStatus", (0,))) == {}


def test_instances_are_no_peers_and_have_none() -> None:
    backend = simulated("a100-mig")
    devices = backend.open().devices
    part = next(device for device in devices if device.is_instance)
    query = Query("nvmlDeviceGetP2PStatus", (0,))
    assert len(value(backend, query)) == 1
    assert backend.ask(part.uuid, [query]) == [Answer(Code.NOT_SUPPORTED)]


def test_a_gpu_that_was_left_out_is_nobodys_peer() -> None:
    backend = simulated("h200x8,gpus=3")
    backend.open(frozenset({"1"}))
    told = value(backend, Query("nvmlDeviceGetP2PStatus", (0,)))
    assert list(told) == [gpu_uuid(backend, 2)]


def test_link_fields_are_those_that_somebody_asks_for() -> None:
    asked = {query.args[0] for metric in CATALOG for query in metric.read.queries if query.args}
    identity = {91, 166}
    assert FIELDS.keys() <= asked | identity
    assert H200.nvlink.links == B200.nvlink.links == 18
