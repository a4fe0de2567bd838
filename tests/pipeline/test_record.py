"""A record shows whether it is whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_gpu.pipeline.batch import Batch
from otel_gpu.pipeline.record import TornError, read, written

BATCHES = st.builds(
    Batch, st.binary(max_size=200), st.integers(0, 2**31), st.integers(0, 2**63 - 1)
)


@given(BATCHES)
def test_a_batch_comes_back_as_it_was(batch: Batch) -> None:
    assert read(written(batch)) == batch


@given(BATCHES, st.data())
def test_a_record_that_was_cut_or_continued_is_torn(batch: Batch, data: st.DataObject) -> None:
    content = written(batch)
    length = data.draw(st.integers(0, len(content) - 1))

    for wrong in (content[:length], content + b"x"):
        with pytest.raises(TornError):
            read(wrong)


@given(BATCHES, st.data())
def test_a_record_with_one_bit_changed_is_torn(batch: Batch, data: st.DataObject) -> None:
    content = bytearray(written(batch))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))

    with pytest.raises(TornError):
        read(bytes(content))
