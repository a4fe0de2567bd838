"""Durations, sizes, addresses, URLs and GPUs are read exactly, or refused in words."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.config.values import (
    LARGEST,
    LONGEST,
    duration,
    endpoint,
    format_duration,
    format_size,
    gpu,
    size,
    split_address,
)

NOT_A_DURATION = "is not a duration, such as 500ms, 15s, 1m or 2h"
NOT_A_SIZE = "is not a size, such as 64MiB, 100MB or a whole number of bytes"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("500ms", 0.5),
        ("300ms", 0.3),
        ("15s", 15.0),
        ("1m", 60.0),
        ("2h", 7200.0),
        ("1m30s", 90.0),
        ("1.5s", 1.5),
        ("0.1m", 6.0),
        ("5", 5.0),
        (5, 5.0),
        (0.25, 0.25),
        (0, 0.0),
    ],
)
def test_a_duration_is_read_as_seconds(text: object, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s",
        "1 s",
        "1d",
        "-1s",
        "1s ",
        "1e3s",
        "٣s",
        "1,5s",
        True,
        None,
        -1,
        [],
        math.nan,
        math.inf,
    ],
)
def test_what_is_not_a_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=NOT_A_DURATION):
        duration(text)


@pytest.mark.parametrize("text", ["745h", "999999999999999h", 1e300])
def test_a_duration_over_a_month_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is over the maximum of 744h"):
        duration(text)


@given(st.floats(0, LONGEST))
def test_a_written_duration_is_read_as_the_same_number(seconds: float) -> None:
    assert duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.00025, "0.00025s"),
        (0.1, "100ms"),
        (1.0, "1s"),
        (1.5, "1.5s"),
        (60.0, "60s"),
        (7200.0, "2h"),
    ],
)
def test_a_duration_is_written_in_the_unit_that_people_use(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("64MiB", 64 << 20),
        ("100MB", 100_000_000),
        ("1.5KiB", 1536),
        ("10 kb", 10_000),
        ("1gib", 1 << 30),
        ("2TB", 2 * 10**12),
        ("512", 512),
        ("512B", 512),
        (512, 512),
        (512.0, 512),
    ],
)
def test_a_size_is_read_as_bytes(text: object, amount: int) -> None:
    assert size(text) == amount


@pytest.mark.parametrize(
    "text", ["", "MiB", "-1B", "1.5B", "64M", "64Mi", "1 2MB", "1ZiB", True, None, 0.5, []]
)
def test_what_is_not_a_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=NOT_A_SIZE):
        size(text)


@pytest.mark.parametrize("text", ["1025TiB", "999999999999999TiB", 10**18, 1e300])
def test_a_size_over_a_pebibyte_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is over the maximum of 1024TiB"):
        size(text)


@given(st.integers(0, LARGEST))
def test_a_written_size_is_read_as_the_same_number(amount: int) -> None:
    assert size(format_size(amount)) == amount


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0B"), (1, "1B"), (1024, "1KiB"), (100 << 20, "100MiB"), (100_000_000, "100MB")],
)
def test_a_size_is_written_in_the_shortest_unit(amount: int, text: str) -> None:
    assert format_size(amount) == text


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9400", "127.0.0.1", 9400),
        (":9400", "", 9400),
        ("localhost:0", "localhost", 0),
        ("[::1]:9400", "::1", 9400),
        ("[fe80::1%eth0]:9400", "fe80::1%eth0", 9400),
        ("node-7.example:65535", "node-7.example", 65535),
    ],
)
def test_an_address_is_split_into_host_and_port(text: str, host: str, port: int) -> None:
    assert split_address(text) == (host, port)


@pytest.mark.parametrize(
    "text", ["", "9400", "localhost", "::1:9400", "a:b", "http://x:1", "a b:1", "x:", "x:-1", "x:٣"]
)
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not host:port, such as"):
        split_address(text)


def test_a_port_over_the_last_one_is_refused() -> None:
    with pytest.raises(ValueError, match="has a port over 65535"):
        split_address("localhost:65536")


@pytest.mark.parametrize(
    "text", ["http://collector:4318", "https://x/otlp?key=1", "http://[::1]:4318/", "http://a:b@c"]
)
def test_an_http_url_is_an_endpoint(text: str) -> None:
    assert endpoint(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "collector",
        "c:4318",
        "//c",
        "ftp://c",
        "http://",
        "http://:80",
        "http://[",
        "http://c:0",
        "http://c:99999",
        "http://c:x",
        "http://c\n:1",
    ],
)
def test_what_otlp_cannot_be_sent_to_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a URL, such as http://collector:4318"):
        endpoint(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (0, 0),
        ("7", 7),
        ("GPU-8b1f0000-aaaa-bbbb-cccc-0123456789ab", "GPU-8b1f0000-aaaa-bbbb-cccc-0123456789ab"),
        ("MIG-GPU-8b1f/7/0", "MIG-GPU-8b1f/7/0"),
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("0001:3b:00.0", "0001:3b:00.0"),
        ("3b:00.0", "0000:3b:00.0"),
    ],
)
def test_a_gpu_is_named_by_index_uuid_or_pci_address(text: object, name: object) -> None:
    assert gpu(text) == name


@pytest.mark.parametrize("text", ["", "gpu0", -1, True, 1.0, "GPU", "3b:00.9", "-1", None, [0]])
def test_what_names_no_gpu_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is not a GPU: give its index, UUID"):
        gpu(text)
