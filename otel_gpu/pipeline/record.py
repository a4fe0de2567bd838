"""A batch as the content of a file, which shows whether it is whole.

Layout, big-endian: magic, version of the format, CRC-32 of all that follows, points, Unix time of
the collection in nanoseconds, length of the body; then the body.
"""

from __future__ import annotations

import struct
import zlib

from otel_gpu.pipeline.batch import Batch

FORMAT = 1
MAGIC = b"otelgpuq"

_HEAD = struct.Struct(">8sHI")
_ABOUT = struct.Struct(">QQQ")


class TornError(Exception):
    """The content is not, or not wholly, a record of this format."""


def written(batch: Batch) -> bytes:
    """Give the content of a batch's file."""
    rest = _ABOUT.pack(batch.points, batch.collected_ns, len(batch.body)) + batch.body
    return _HEAD.pack(MAGIC, FORMAT, zlib.crc32(rest)) + rest


def read(content: bytes) -> Batch:
    """Give the batch of a file's content. Raises TornError."""
    if len(content) < _HEAD.size + _ABOUT.size:
        raise TornError("it ends within its head")
    magic, version, checksum = _HEAD.unpack_from(content)
    if (magic, version) != (MAGIC, FORMAT):
        raise TornError("it is no record of this format")
    if zlib.crc32(content[_HEAD.size :]) != checksum:
        raise TornError("its checksum is wrong")
    points, collected_ns, length = _ABOUT.unpack_from(content, _HEAD.size)
    body = content[_HEAD.size + _ABOUT.size :]
    if len(body) != length:
        raise TornError("its length is wrong")
    return Batch(body, points, collected_ns)
