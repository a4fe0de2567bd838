from __future__ import annotations

import marshal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.model import Code
from otel_gpu.worker.frames import HEADER, LIMIT, FrameError, Unpacker, pack

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@given(messages=st.lists(plain, max_size=5), size=st.integers(min_value=1, max_value=40))
def test_messages_come_out_as_they_went_in_however_the_bytes_are_cut(
    messages: list[Any], size: int
) -> None:
    stream = b"".join(map(pack, messages))
    unpacker = Unpacker()
    parts = [stream[start : start + size] for start in range(0, len(stream), size)]
    got = [message for part in parts for message in unpacker.feed(part)]
    unpacker.finish()
    assert got == messages


@pytest.mark.parametrize("cut", [1, 3, 4, 7])
def test_a_stream_that_ends_inside_a_message_is_an_error(cut: int) -> None:
    unpacker = Unpacker()
    assert unpacker.feed(pack(["a message"])[:cut]) == []
    with pytest.raises(FrameError, match=f"ended inside a message, {cut} bytes into it"):
        unpacker.finish()


def test_a_length_over_the_limit_is_refused_before_any_of_it_is_read() -> None:
    with pytest.raises(FrameError, match="over the limit"):
        Unpacker().feed(HEADER.pack(LIMIT + 1))


def test_a_message_over_the_limit_is_not_sent() -> None:
    with pytest.raises(FrameError, match="over the limit"):
        pack(bytes(LIMIT))


@pytest.mark.parametrize("body", [b"", b"\xff\xff", marshal.dumps([1, 2])[:-1]])
def test_bytes_that_are_no_message_are_an_error(body: bytes) -> None:
    with pytest.raises(FrameError, match="cannot be read"):
        Unpacker().feed(HEADER.pack(len(body)) + body)


@pytest.mark.parametrize("value", [Code.TIMEOUT, object(), {1: pytest}])
def test_a_message_that_is_more_than_plain_values_is_refused(value: object) -> None:
    with pytest.raises(FrameError, match="more than plain values"):
        pack(value)
