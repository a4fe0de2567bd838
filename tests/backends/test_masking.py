from __future__ import annotations

from typing import Any

from otel_gpu.backends.masking import Mask, masked

A, B = "GPU-12345678-9abc-def0-1234-56789abcdef0", "GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
MIG = "MIG-0fedcba9-8765-4321-0fed-cba987654321"
FIRST = "GPU-00000001-0000-4000-8000-000000000001"
SECOND = "GPU-00000002-0000-4000-8000-000000000002"
FIRST_MIG = "MIG-00000001-0000-4000-8000-000000000001"


def device(uuid: str, **more: object) -> dict[str, object]:
    return {"device": {"uuid": uuid, "serial": "", "parent": "", **more}, "answers": {}}


def test_uuids_count_up_in_the_order_of_the_file_and_parents_go_on_leading_to_their_gpu() -> None:
    data = {"devices": [device(B), device(MIG, parent=B), device(A)], "refused": [{"uuid": A}]}
    result = masked(data)
    assert [entry["device"]["uuid"] for entry in result["devices"]] == [FIRST, FIRST_MIG, SECOND]
    assert result["devices"][1]["device"]["parent"] == FIRST
    assert result["refused"] == [{"uuid": SECOND}]


def test_a_masked_recording_does_not_change_when_it_is_masked_again() -> None:
    data = {"devices": [device(B, serial="165"), device(MIG, parent=B)], "refused": []}
    assert masked(masked(data)) == masked(data)


def test_a_serial_number_is_replaced_where_it_is_asked_for_too() -> None:
    mask = Mask()
    assert mask.value({"serial": "1650000000000"}) == {"serial": "0000000000001"}
    told: list[list[Any]] = [[0, "1650000000000"], [3], [0, "1650000000001"]]
    assert mask.answers("nvmlDeviceGetSerial", told) == [
        [0, "0000000000001"],
        [3],
        [0, "0000000000002"],
    ]


def test_what_is_told_of_each_peer_is_told_of_its_stand_in() -> None:
    peers: dict[str, Any] = {"nvmlDeviceGetP2PStatus(0)": [[0, {B: 0, MIG: 5}]]}
    data = {"devices": [{**device(A), "answers": peers}, device(B)], "refused": []}
    (first, _) = masked(data)["devices"]
    assert first["answers"] == {"nvmlDeviceGetP2PStatus(0)": [[0, {SECOND: 0, FIRST_MIG: 5}]]}


def test_a_uuid_is_found_inside_other_text() -> None:
    assert Mask().value([f"MIG-{A}/1/0"]) == [f"MIG-{FIRST}/1/0"]


def test_a_process_keeps_its_stand_in_from_one_list_to_the_next() -> None:
    mask = Mask()
    first: list[list[Any]] = [
        [0, [{"pid": 4711, "name": "secret", "usedGpuMemory": 5}, {"pid": 12}]]
    ]
    second: list[list[Any]] = [[0, [{"pid": 12, "smUtil": 4711}]]]
    assert mask.answers("nvmlDeviceGetComputeRunningProcesses", first) == [
        [0, [{"pid": 1001, "name": "process-1", "usedGpuMemory": 5}, {"pid": 1002}]]
    ]
    assert mask.answers("nvmlDeviceGetProcessUtilization(0)", second) == [
        [0, [{"pid": 1002, "smUtil": 4711}]]
    ]


def test_the_name_of_what_is_no_process_stays() -> None:
    assert Mask().value({"name": "1g.18gb"}) == {"name": "1g.18gb"}


def test_an_identity_in_bytes_keeps_its_length_and_none_stays_none() -> None:
    mask = Mask()
    assert mask.value({"clusterUuid": [9, 8, 7, 6]}) == {"clusterUuid": [0, 0, 0, 1]}
    assert mask.value({"clusterUuid": [0, 0, 0, 0]}) == {"clusterUuid": [0, 0, 0, 0]}
    assert mask.answers("nvmlDeviceGetHostname_v1", [[0, "node17"], [0, ""]]) == [
        [0, "host-1"],
        [0, ""],
    ]
