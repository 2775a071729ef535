"""A message as frames: one small msgspec header, then one raw buffer per array, never copied.

The header announces each buffer's dtype and shape; what does not decode or does not match is a BadFrame.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
import numpy as np

from common.errors import BadFrame
from common.saga.arrays import Array
from common.wire import messages

DTYPES = ("float32", "float64", "int64", "uint8", "uint16")
MAX_DIMENSIONS = 8


class Announced(msgspec.Struct, frozen=True, array_like=True):
    dtype: Literal["float32", "float64", "int64", "uint8", "uint16"]
    shape: Annotated[tuple[messages.Count, ...], msgspec.Meta(max_length=MAX_DIMENSIONS)]


class Header(msgspec.Struct, frozen=True, array_like=True):
    message: messages.AnyMessage
    buffers: tuple[Announced, ...]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Header)


def encode(message: messages.Message, buffers: Sequence[Array] = ()) -> list[memoryview | bytes]:
    """[header, buffer, ...]; the buffers are views of the arrays, which must not change while they travel."""
    arrays = [np.ascontiguousarray(array) for array in buffers]
    for array in arrays:
        if array.dtype.name not in DTYPES:
            raise BadFrame(f"a buffer of dtype {array.dtype}", why=f"the wire carries {', '.join(DTYPES)}")
    announced = tuple(Announced(array.dtype.name, array.shape) for array in arrays)  # type: ignore[arg-type]
    header = _ENCODER.encode(Header(message, announced))  # type: ignore[arg-type]
    return [header, *(array.data.cast("B") if array.size else b"" for array in arrays)]


def decode(frames: Sequence[memoryview | bytes]) -> tuple[messages.AnyMessage, list[Array]]:
    """The message and its arrays, which are read-only views of the frames."""
    try:
        header = _DECODER.decode(frames[0])
    except (msgspec.MsgspecError, IndexError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame("a message that does not decode", why=str(error)) from error
    if len(header.buffers) != len(frames) - 1:
        raise BadFrame(f"{len(frames) - 1} buffers", why=f"the message announces {len(header.buffers)}")
    return header.message, [_array(a, frame) for a, frame in zip(header.buffers, frames[1:], strict=True)]


def _array(announced: Announced, frame: memoryview | bytes) -> Array:
    dtype, count = np.dtype(announced.dtype), 1
    for n in announced.shape:
        count *= n
    if len(frame) != count * dtype.itemsize:
        raise BadFrame(
            f"a buffer of {len(frame)} bytes",
            why=f"the message announces {announced.dtype} {announced.shape}: {count * dtype.itemsize} bytes",
        )
    try:
        array = np.frombuffer(frame, dtype).reshape(announced.shape) if count else np.zeros(announced.shape, dtype)
    except (ValueError, OverflowError) as error:
        raise BadFrame(f"a buffer of shape {announced.shape}", why=str(error)) from error
    array.flags.writeable = False
    return array
