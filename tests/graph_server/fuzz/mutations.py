"""Wounds for the files of a dataset: what bad disks, bad exports and bad people do to them. Pure, and seeded.

What packs a file is opened first, most of the time, so that a wound reaches what lies behind the checksum: members of
an archive, the header of an array, the text in a gzip file.
"""

import bz2
import gzip
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from random import Random

import pyarrow

Files = dict[str, bytes]
Wound = Callable[[Random, bytes], bytes]

NUMBERS = (0, 1, -1, 2, 3, 127, 255, 65_536, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 10**30)
TOKENS = (
    *(str(number).encode() for number in NUMBERS),
    *(b"1e400", b"nan", b"-inf", b"NaN", b"null", b"", b" ", b"\n", b"\n\n", b"\r", b"\t", b",", b",,", b";", b'"'),
    *(b"\0", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", "ß".encode(), b"#", b"%", b"//", b"\\", b"_", b"+1"),
    *(b"[", b"]", b"{", b"}", b"[" * 5000, b"{'a':" * 500, b"&a [*a, *a]", b"*a", b"!!python/object:os.system"),
    *(b"<<: *a", b"1_0", b"cos\nsystem\n"),
    *(b"%%MatrixMarket", b"source,target", b"id", b"label", b"PAR1", b"PK\3\4", b"\x93NUMPY", b"\x80\x04."),
    *(b"2.5", b"0x10", b"1" * 5000, b"9" * 19, b"x" * 70_000, b"0,1\n" * 2000),
)  # fmt: skip
DTYPES = (
    "<f4",
    "<f8",
    ">i8",
    "|O",
    "<U99999999",
    "|S0",
    "<M8[s]",
    "|V8",
    "<c16",
    "|b1",
    "<i8",
    "(9999,9999)f8",
    "f4,i4",
)


def wounded(random: Random, files: Mapping[str, bytes]) -> Files:
    """The files with one to four wounds, now and then one file less or one in another's place."""
    changed = dict(files)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        name = random.choice(sorted(changed))
        chance = random.random()
        if chance < 0.03 and len(changed) > 1:
            del changed[name]
        elif chance < 0.06:
            changed[name] = changed[random.choice(sorted(changed))]
        elif chance < 0.12:
            changed[name] = spliced(random, changed[name], changed[random.choice(sorted(changed))])
        else:
            changed[name] = wound(random, changed[name])
    return changed


def wound(random: Random, data: bytes) -> bytes:
    """One wound, behind the packing if there is one."""
    if random.random() < 0.85:
        for opened in (_in_archive, _in_array, _in_packing):
            if (result := opened(random, data)) is not None:
                return result
    return random.choice(PLAIN)(random, data)


def spliced(random: Random, data: bytes, other: bytes) -> bytes:
    """A part of another file in the place of a part of this one."""
    start, end = _range(random, data)
    first, last = _range(random, other)
    return data[:start] + other[first:last] + data[end:]


def _flipped(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] = random.choice((0, 255, 127, 128, random.randrange(256)))
    return bytes(changed)


def _cut_off(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _cut_out(random: Random, data: bytes) -> bytes:
    start, end = _range(random, data)
    return data[:start] + data[end:]


def _repeated(random: Random, data: bytes) -> bytes:
    start, end = _range(random, data)
    times = random.choice((2, 2, 10, 1000))
    return data[:end] + data[start:end][: 1 << 16] * times + data[end:]


def _put_in(random: Random, data: bytes) -> bytes:
    start, end = _range(random, data) if random.random() < 0.5 else (random.randrange(len(data) + 1),) * 2
    return data[:start] + random.choice(TOKENS) + data[end:]


def _other_number(random: Random, data: bytes) -> bytes:
    """A number of the text becomes an absurd one."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?", data[: 1 << 16]))
    if not found:
        return _put_in(random, data)
    place = random.choice(found)
    return data[: place.start()] + random.choice(TOKENS[: len(NUMBERS) + 6]) + data[place.end() :]


def _other_word(random: Random, data: bytes) -> bytes:
    """A word takes another's place, as in a header or a key."""
    found = list(re.finditer(rb"[A-Za-z_]+", data[: 1 << 16]))
    if not found:
        return _flipped(random, data)
    place, other = random.choice(found), random.choice(found)
    return data[: place.start()] + other[0] + data[place.end() :]


def _other_integer(random: Random, data: bytes) -> bytes:
    """Four or eight bytes become an absurd integer: a size, an offset, an index."""
    kind = random.choice(("<i", "<q", ">i", ">q"))
    size = struct.calcsize(kind)
    if len(data) < size:
        return _put_in(random, data)
    fitting = [number for number in NUMBERS if -(2 ** (8 * size - 1)) <= number < 2 ** (8 * size - 1)]
    place = random.randrange(len(data) - size + 1)
    return data[:place] + struct.pack(kind, random.choice(fitting)) + data[place + size :]


PLAIN: tuple[Wound, ...] = (
    _flipped, _cut_off, _cut_out, _repeated, _put_in, _put_in, _other_number, _other_number, _other_word,
    _other_integer,
)  # fmt: skip


def _range(random: Random, data: bytes) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.choice((1, 2, 4, 8, 16, 64, 1024)))


def _in_archive(random: Random, data: bytes) -> bytes | None:
    """A member of a zip is wounded, renamed, left out or doubled; or its sizes are made to lie."""
    if not data.startswith(b"PK\3\4"):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except (OSError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error, EOFError):
        return None
    if not members:
        return None
    name, chance = random.choice(sorted(members)), random.random()
    if chance < 0.7:
        members[name] = wound(random, members[name])
    elif chance < 0.8:
        members[random.choice(("x.npy", "data.npy", "shape.npy", *sorted(members)))] = members.pop(name)
    elif chance < 0.9:
        del members[name]
    packed = io.BytesIO()
    method = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(packed, "w", method) as archive:
        for member, content in members.items():
            archive.writestr(zipfile.ZipInfo(member), content, method)
    whole = packed.getvalue()
    directory = whole.rfind(b"PK\1\2")
    return whole if chance < 0.95 else whole[:directory] + _other_integer(random, whole[directory:])


def _in_array(random: Random, data: bytes) -> bytes | None:
    """The header of an `.npy` says another shape, dtype or order; its length is right."""
    if not data.startswith(b"\x93NUMPY\1\0") or len(data) < 10:
        return None
    end = 10 + struct.unpack("<H", data[8:10])[0]
    header, values = data[10:end], data[end:]
    chance = random.random()
    if chance < 0.4:
        header = re.sub(rb"\([^)]*\)", _shape(random), header, count=1)
    elif chance < 0.6:
        header = re.sub(rb"'descr': '[^']*'", f"'descr': '{random.choice(DTYPES)}'".encode(), header, count=1)
    elif chance < 0.65:
        header = header.replace(b"False", b"True")
    elif chance < 0.75:
        header = random.choice(PLAIN)(random, header)
    else:
        values = random.choice(PLAIN)(random, values)
    header = header[: 2**16 - 1]
    return data[:8] + struct.pack("<H", len(header)) + header + values


def _shape(random: Random) -> bytes:
    sizes = [str(random.choice((*NUMBERS[:13], 4, 4, 4))) for _ in range(random.choice((0, 1, 1, 2, 2, 3)))]
    return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})".encode()


def _in_packing(random: Random, data: bytes) -> bytes | None:
    """What gzip, bzip2 or Zstandard hold is wounded, and packed again."""
    try:
        if data.startswith(b"\x1f\x8b"):
            return gzip.compress(wound(random, gzip.decompress(data)), 1, mtime=0)
        if data.startswith(b"BZh"):
            return bz2.compress(wound(random, bz2.decompress(data)), 1)
        if data.startswith(b"\x28\xb5\x2f\xfd"):
            content = pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd").read()
            return bytes(pyarrow.compress(wound(random, content), codec="zstd", asbytes=True))
    except (OSError, EOFError, ValueError, zlib.error):
        return None
    return None
