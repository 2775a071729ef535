# mypy: ignore-errors
"""Vectors for kernels: a run of numbers of a row, held in registers. The only file with LLVM IR.

A kernel is a plain loop over these, and LLVM makes AVX-512, AVX2 or NEON of it:

    zeros(array, n)  fill(number, n)      load(array, position, n)      store(array, position, vector)
    v + w, v - w, v * w, v / w            maximum(v, w)                 minimum(v, w)
    where_positive(c, v, w)               two_to(v)                     fraction(v), exponent(v)
    spread(v, each)                       add_columns(sums, v)          where_byte(word, limit, number, n)
    at(array, position)                   prefetch(array, position, n)
    high_product(a, b)                    of two uint64: the upper half

A position counts numbers from the first of the array, whatever its shape, and is not checked. Widths are constants of
the kernel, any from 1 on. Numbers are float32 or float64; bfloat16, which NumPy has not, is loaded from uint16 as
float32. No instruction has a flag that lets LLVM regroup or fuse: each lane is rounded as NumPy would round it, so the
bits are the same on every processor and however a row is cut into vectors.
"""

import itertools
import math
import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable
from numba.np.arrayobj import make_array

PIECE_BYTES = 64
"""A register of AVX-512. For AVX2 and NEON LLVM makes two or four of it."""
CACHE_LINE = 64

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


class Vector(types.Type):
    """`width` numbers in pieces of `lanes`. Where they do not fit, the last piece overlaps the one before: both compute
    the same numbers there, and nothing is read or written outside the width."""

    def __init__(self, dtype, width):
        self.dtype, self.width = dtype, width
        self.lanes = min(PIECE_BYTES * 8 // dtype.bitwidth, 1 << (width.bit_length() - 1))
        self.starts = (*range(0, width - self.lanes, self.lanes), width - self.lanes)
        super().__init__(name=f"{dtype} x {width}")

    def place(self, lane):
        """(piece, lane of the piece) that holds a lane."""
        piece = min(lane // self.lanes, len(self.starts) - 1)
        return piece, lane - self.starts[piece]


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, vector):
        super().__init__(manager, vector, ir.ArrayType(_piece(vector), len(vector.starts)))


def _constant_of(width):
    if not isinstance(width, types.IntegerLiteral):
        raise TypingError("the width of a vector is a constant of the kernel")
    return width.literal_value


def _number(dtype):
    return ir.FloatType() if dtype == types.float32 else ir.DoubleType()


def _piece(vector):
    return ir.VectorType(_number(vector.dtype), vector.lanes)


def _constant(type_, number):
    return ir.Constant(type_, [number] * type_.count)


def _pieces(builder, vector, value):
    return [builder.extract_value(value, n) for n in range(len(vector.starts))]


def _pack(builder, vector, pieces):
    value = ir.Constant(ir.ArrayType(_piece(vector), len(pieces)), ir.Undefined)
    for n, piece in enumerate(pieces):
        value = builder.insert_value(value, piece, n)
    return value


def _splat(builder, number, lanes):
    one = builder.insert_element(ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined), number, _I32(0))
    return builder.shuffle_vector(one, one, _constant(ir.VectorType(_I32, lanes), 0))


# ---- numbers in and out


def _pointer(context, builder, array_type, array, position):
    return builder.gep(make_array(array_type)(context, builder, array).data, [position])


def _like(array):
    """The type of the sums of an array's numbers."""
    return types.float32 if array.dtype == types.uint16 else array.dtype


@intrinsic
def at(typingctx, array, position):
    """array[position] as int64. Plain indexing also asks for negative positions: one more instruction per edge."""

    def emit(context, builder, signature, arguments):
        number = builder.load(_pointer(context, builder, array, *arguments))
        return context.cast(builder, number, array.dtype, types.int64)

    return types.int64(array, types.int64), emit


@intrinsic
def high_product(typingctx, a, b):
    def emit(context, builder, signature, arguments):
        wide = builder.mul(*(builder.zext(argument, ir.IntType(128)) for argument in arguments))
        return builder.trunc(builder.lshr(wide, ir.Constant(wide.type, 64)), _I64)

    return types.uint64(types.uint64, types.uint64), emit


@intrinsic(prefer_literal=True)
def prefetch(typingctx, array, position, width):
    """Ask for `width` numbers before they are needed. Any position will do."""

    def emit(context, builder, signature, arguments):
        pointer = builder.bitcast(_pointer(context, builder, array, *arguments[:2]), _I8.as_pointer())
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), _I32, _I32, _I32]),
            "llvm.prefetch.p0",
        )
        num_bytes = _constant_of(width) * array.dtype.bitwidth // 8
        offsets = list(range(0, num_bytes, CACHE_LINE))
        if num_bytes % CACHE_LINE:  # such rows begin anywhere, and end a line further if they begin late in one
            offsets.append(num_bytes - 1)
        for offset in offsets:
            builder.call(function, [builder.gep(pointer, [_I64(offset)]), _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64, width), emit


@intrinsic(prefer_literal=True)
def load(typingctx, array, position, width):
    vector = Vector(_like(array), _constant_of(width))

    def emit(context, builder, signature, arguments):
        first, pieces = _pointer(context, builder, array, *arguments[:2]), []
        stored = ir.VectorType(ir.IntType(16), vector.lanes) if array.dtype == types.uint16 else _piece(vector)
        for start in vector.starts:
            piece = builder.load(builder.bitcast(builder.gep(first, [_I64(start)]), stored.as_pointer()))
            piece.align = array.dtype.bitwidth // 8
            if array.dtype == types.uint16:  # the upper half of a float32
                whole = ir.VectorType(_I32, vector.lanes)
                piece = builder.bitcast(builder.shl(builder.zext(piece, whole), _constant(whole, 16)), _piece(vector))
            pieces.append(piece)
        return _pack(builder, vector, pieces)

    return vector(array, types.int64, width), emit


@intrinsic
def store(typingctx, array, position, vector):
    if array.dtype != vector.dtype:
        return None

    def emit(context, builder, signature, arguments):
        first = _pointer(context, builder, array, *arguments[:2])
        for start, piece in zip(vector.starts, _pieces(builder, vector, arguments[2]), strict=True):
            pointer = builder.bitcast(builder.gep(first, [_I64(start)]), piece.type.as_pointer())
            builder.store(piece, pointer).align = vector.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), emit


@intrinsic(prefer_literal=True)
def fill(typingctx, number, width):
    vector = Vector(number, _constant_of(width))

    def emit(context, builder, signature, arguments):
        return _pack(builder, vector, [_splat(builder, arguments[0], vector.lanes)] * len(vector.starts))

    return vector(number, width), emit


@intrinsic(prefer_literal=True)
def zeros(typingctx, array, width):
    """Of the type of the array's numbers."""
    vector = Vector(_like(array), _constant_of(width))

    def emit(context, builder, signature, arguments):
        return _pack(builder, vector, [ir.Constant(_piece(vector), None)] * len(vector.starts))

    return vector(array, width), emit


# ---- lane by lane: functions of vectors and, so that a formula is written once, of numbers in and outside kernels


def maximum(v, w):
    return v if v > w else w


def minimum(v, w):
    return v if v < w else w


def where_positive(c, v, w):
    return v if c > 0 else w


def two_to(n):
    """2^n of a whole n, float32, -126 to 127."""
    return np.float32(math.ldexp(1, int(n)))


def fraction(x):
    """Of a normal positive float32, 0.5 to below 1: x = fraction · 2^exponent."""
    return np.float32(math.frexp(x)[0])


def exponent(x):
    return np.float32(math.frexp(x)[1])


def library_exp(x):
    """The C library's, number by number."""
    return math.exp(x)


def library_log(x):
    return math.log(x)


def _lane_by_lane(function, emit, num_arguments, *, numbers=True):
    """Compile `function` of vectors of one type and of numbers, which are spread; emit(builder, *pieces)."""

    def typed(*arguments):
        vectors = {a for a in arguments if isinstance(a, Vector)}
        result = vectors.pop() if vectors else arguments[0]
        dtype = result.dtype if isinstance(result, Vector) else result
        fits = not vectors and all(a in (result, dtype) or isinstance(a, types.Integer) for a in arguments)
        return result if fits and dtype in (types.float32, types.float64) else None

    def lower(context, builder, signature, arguments):
        result = signature.return_type
        vector = result if isinstance(result, Vector) else Vector(result, 1)
        sides = [
            _pieces(builder, vector, value)
            if type_ == vector
            else [_splat(builder, context.cast(builder, value, type_, vector.dtype), vector.lanes)] * len(vector.starts)
            for type_, value in zip(signature.args, arguments, strict=True)
        ]
        pieces = [emit(builder, *side) for side in zip(*sides, strict=True)]
        return _pack(builder, vector, pieces) if result == vector else builder.extract_element(pieces[0], _I32(0))

    typers = {1: lambda v: typed(v), 2: lambda v, w: typed(v, w), 3: lambda c, v, w: typed(c, v, w)}
    type_callable(function)(lambda context: typers[num_arguments])
    for kinds in itertools.product((Vector, types.Number), repeat=num_arguments):
        if numbers or Vector in kinds:
            lower_builtin(function, *kinds)(lower)


def _whole(piece):
    """Integers of the size of a piece's numbers."""
    return ir.VectorType(_I32, piece.type.count)


def _select(comparison):
    return lambda builder, v, w: builder.select(builder.fcmp_ordered(comparison, v, w), v, w)


def _where_positive(builder, c, v, w):
    return builder.select(builder.fcmp_ordered(">", c, _constant(c.type, 0.0)), v, w)


# A float32 is a sign, 8 bits of exponent + 127 and 23 bits of fraction.


def _two_to(builder, n):
    biased = builder.add(builder.fptosi(n, _whole(n)), _constant(_whole(n), 127))
    return builder.bitcast(builder.shl(biased, _constant(_whole(n), 23)), n.type)


def _fraction(builder, x):
    bits = builder.and_(builder.bitcast(x, _whole(x)), _constant(_whole(x), (1 << 23) - 1))
    return builder.bitcast(builder.or_(bits, _constant(_whole(x), 126 << 23)), x.type)


def _exponent(builder, x):
    biased = builder.lshr(builder.bitcast(x, _whole(x)), _constant(_whole(x), 23))
    return builder.sitofp(builder.sub(biased, _constant(_whole(x), 126)), x.type)


def _library(name):
    def emit(builder, x):
        type_ = f"v{x.type.count}f{64 if x.type.element == ir.DoubleType() else 32}"
        function = ir.FunctionType(x.type, [x.type])
        return builder.call(cgutils.get_or_insert_function(builder.module, function, f"llvm.{name}.{type_}"), [x])

    return emit


for _operators, _emit in (
    ((operator.add, operator.iadd), ir.IRBuilder.fadd),
    ((operator.sub, operator.isub), ir.IRBuilder.fsub),
    ((operator.mul, operator.imul), ir.IRBuilder.fmul),
    ((operator.truediv, operator.itruediv), ir.IRBuilder.fdiv),
):
    for _operator in _operators:
        _lane_by_lane(_operator, _emit, 2, numbers=False)
_lane_by_lane(maximum, _select(">"), 2)
_lane_by_lane(minimum, _select("<"), 2)
_lane_by_lane(where_positive, _where_positive, 3)
_lane_by_lane(two_to, _two_to, 1)
_lane_by_lane(fraction, _fraction, 1)
_lane_by_lane(exponent, _exponent, 1)
_lane_by_lane(library_exp, _library("exp"), 1)
_lane_by_lane(library_log, _library("log"), 1)


# ---- between lanes


def _pick(builder, vector, pieces, lanes):
    """A piece whose lane n is the vector's lane lanes[n]."""
    indices, places = ir.VectorType(_I32, len(lanes)), [vector.place(lane) for lane in lanes]
    picked = None
    for source in sorted({piece for piece, _ in places}):
        found = ir.Constant(indices, [lane if piece == source else 0 for piece, lane in places])
        part = builder.shuffle_vector(pieces[source], pieces[source], found)
        if picked is not None:
            kept = [n + len(lanes) * (piece == source) for n, (piece, _) in enumerate(places)]
            part = builder.shuffle_vector(picked, part, ir.Constant(indices, kept))
        picked = part
    return picked


@intrinsic(prefer_literal=True)
def spread(typingctx, numbers, each):
    """`each` lanes of every number: one weight per head over the head's columns."""
    vector = Vector(numbers.dtype, numbers.width * _constant_of(each))

    def emit(context, builder, signature, arguments):
        pieces = _pieces(builder, numbers, arguments[0])
        spread_ = [
            _pick(builder, numbers, pieces, [lane // _constant_of(each) for lane in range(start, start + vector.lanes)])
            for start in vector.starts
        ]
        return _pack(builder, vector, spread_)

    return vector(numbers, each), emit


@intrinsic
def add_columns(typingctx, sums, vector):
    """Every sum plus its share of the vector's lanes, one after the other: (sum + first) + second ..."""
    each = vector.width // sums.width

    def emit(context, builder, signature, arguments):
        totals, pieces = _pieces(builder, sums, arguments[0]), _pieces(builder, vector, arguments[1])
        for n, start in enumerate(sums.starts):
            for column in range(each):
                lanes = [head * each + column for head in range(start, start + sums.lanes)]
                totals[n] = builder.fadd(totals[n], _pick(builder, vector, pieces, lanes))
        return _pack(builder, sums, totals)

    return sums(sums, vector), emit


@intrinsic(prefer_literal=True)
def where_byte(typingctx, word, limit, number, width):
    """Lane n: the number where byte n of the word, the lowest being byte 0, is at least `limit`, else 0."""
    vector = Vector(number, _constant_of(width))

    def emit(context, builder, signature, arguments):
        word_, limit_, number_, _ = arguments
        pieces = []
        for start in vector.starts:
            bytes_ = builder.bitcast(builder.lshr(word_, _I64(8 * start)), ir.VectorType(_I8, 8))
            lanes = ir.Constant(ir.VectorType(_I32, vector.lanes), list(range(vector.lanes)))
            found = builder.zext(builder.shuffle_vector(bytes_, bytes_, lanes), ir.VectorType(_I32, vector.lanes))
            kept = builder.icmp_unsigned(">=", found, _splat(builder, builder.trunc(limit_, _I32), vector.lanes))
            spread_ = _splat(builder, number_, vector.lanes)
            pieces.append(builder.select(kept, spread_, ir.Constant(spread_.type, None)))
        return _pack(builder, vector, pieces)

    return vector(types.uint64, types.int64, number, width), emit
