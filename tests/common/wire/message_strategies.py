"""Messages of every kind, made from their declared fields, and arrays that the wire carries."""

from typing import Any, get_args

import msgspec
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from msgspec import inspect

from common.wire import messages
from common.wire.frames import DTYPES

KINDS: tuple[type[messages.Message], ...] = get_args(messages.AnyMessage)
LARGEST = 2**63 - 1


def message_of(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    return _of(inspect.type_info(kind))


def any_message() -> st.SearchStrategy[Any]:
    return st.sampled_from(KINDS).flatmap(message_of)


def any_array() -> st.SearchStrategy[np.ndarray]:
    """Empty ones, too, and of up to three dimensions."""
    shapes = arrays_of.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)
    return st.sampled_from(DTYPES).flatmap(lambda dtype: arrays_of.arrays(dtype, shapes))


def _of(declared: Any) -> st.SearchStrategy[Any]:
    match declared:
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType(ge=least):
            return st.integers(-LARGEST if least is None else least, LARGEST)
        case inspect.FloatType():
            return st.floats(allow_nan=False)
        case inspect.StrType():
            return st.text(max_size=8)
        case inspect.EnumType(cls=cls):
            return st.sampled_from(cls)
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.UnionType(types=types):
            return st.one_of([_of(one) for one in types])
        case inspect.TupleType(item_types=items):
            return st.tuples(*(_of(item) for item in items))
        case inspect.VarTupleType(item_type=item):
            return st.lists(_of(item), max_size=4).map(tuple)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(_of(key), _of(value), max_size=4)
        case inspect.StructType(cls=cls, fields=fields) | inspect.DataclassType(cls=cls, fields=fields):
            return st.builds(cls, **{field.name: _of(field.type) for field in fields})
    raise NotImplementedError(f"a field of type {declared}")
