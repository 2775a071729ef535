"""What stands in the files of a checkpoint, and how it is proved that nothing of it has changed. Pure.

shard-0-of-2.safetensors   weights/<parameter>  best/<parameter>  optimizer/<optimizer's name>/<parameter>
manifest.json              {sha256 of the manifest, manifest}: whose it is, the clock, each file's size and SHA-256
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec
import numpy as np
import safetensors
import safetensors.numpy

from common.sharding import join, shard
from parameter_server.same_job import JobRecord
from parameter_server.saved_state import Array, ClockRecord, ShardState

FORMAT_VERSION = 1
MANIFEST = "manifest.json"


class Damaged(Exception):
    """In words: which file, and what is wrong with it."""


class WrittenFile(msgspec.Struct, frozen=True):
    """`name`: within the checkpoint's folder."""

    name: str
    num_bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Written last: a checkpoint without one was never finished. `files`: of the shards, in their order."""

    format_version: int = FORMAT_VERSION
    job: JobRecord
    clock: ClockRecord
    files: tuple[WrittenFile, ...]


class _Sealed(msgspec.Struct):
    sha256: str
    manifest: msgspec.Raw


def shard_file(number: int, count: int) -> str:
    return f"shard-{number}-of-{count}.safetensors"


def written(name: str, data: bytes) -> WrittenFile:
    return WrittenFile(name, len(data), sha256(data).hexdigest())


def check_file(file: WrittenFile, data: bytes) -> None:
    """Raises Damaged."""
    if len(data) != file.num_bytes:
        raise Damaged(f"{file.name} has {len(data):,} bytes, of {file.num_bytes:,}")
    if sha256(data).hexdigest() != file.sha256:
        raise Damaged(f"{file.name} does not have its checksum")


# ---- the manifest


def encode_manifest(manifest: Manifest) -> bytes:
    body = msgspec.json.encode(manifest)
    return msgspec.json.format(msgspec.json.encode(_Sealed(_seal(body), msgspec.Raw(body))), indent=2)


def decode_manifest(data: bytes) -> Manifest:
    """Raises Damaged if a byte has changed, or another version of Dorylus wrote it."""
    try:
        sealed = msgspec.json.decode(data, type=_Sealed)
        if sealed.sha256 != _seal(bytes(sealed.manifest)):
            raise Damaged(f"{MANIFEST} does not have its checksum")
        manifest = msgspec.json.decode(sealed.manifest, type=Manifest)
    except msgspec.MsgspecError as error:
        raise Damaged(f"{MANIFEST} cannot be read: {error}") from None
    if manifest.format_version != FORMAT_VERSION:
        raise Damaged(f"{MANIFEST} is of format {manifest.format_version}, and this version reads {FORMAT_VERSION}")
    return manifest


def _seal(body: bytes) -> str:
    """Whatever its blanks and line breaks are."""
    return sha256(msgspec.json.format(body, indent=-1)).hexdigest()


# ---- a shard


def encode_shard(state: ShardState) -> bytes:
    groups: dict[str, Mapping[str, Array]] = {"weights": state.weights}
    for parameter, states in state.optimizer.items():
        for name, rows in states.items():
            groups[f"optimizer/{name}"] = {**groups.get(f"optimizer/{name}", {}), parameter: rows}
    if state.best is not None:
        groups["best"] = state.best
    arrays = {
        f"{group}/{name}": np.ascontiguousarray(rows) for group, of in groups.items() for name, rows in of.items()
    }
    data: bytes = safetensors.numpy.save(arrays, metadata={"weights_version": str(state.version)})
    return data


def decode_shard(name: str, data: bytes, clock: ClockRecord) -> ShardState:
    """Raises Damaged if it is no shard."""
    try:
        arrays: dict[str, Array] = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise Damaged(f"{name} cannot be read: {error}") from None
    weights, best = _below("weights/", arrays), _below("best/", arrays)
    optimizer: dict[str, dict[str, Array]] = {parameter: {} for parameter in weights}
    for key, rows in _below("optimizer/", arrays).items():
        of, _, parameter = key.partition("/")
        optimizer.setdefault(parameter, {})[of] = rows
    return ShardState(clock.version, weights, optimizer, best or None)


def _below(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {key.removeprefix(prefix): rows for key, rows in arrays.items() if key.startswith(prefix)}


# ---- all shards, and each again


def join_states(states: Sequence[ShardState]) -> ShardState:
    """All rows of all shards, in order. Raises ValueError if they are not shards of one state."""
    first = states[0]
    if any((state.version, state.best is None) != (first.version, first.best is None) for state in states):
        raise ValueError("the shards are of different moments")
    best = None if first.best is None else join([state.best or {} for state in states])
    return ShardState(
        first.version,
        join([state.weights for state in states]),
        {name: join([dict(state.optimizer[name]) for state in states]) for name in first.optimizer},
        best,
    )


def shard_state(state: ShardState, count: int, number: int) -> ShardState:
    """The rows that shard `number` of `count` holds."""
    best = None if state.best is None else shard(state.best, count, number)
    optimizer = {name: shard(rows, count, number) for name, rows in state.optimizer.items()}
    return ShardState(state.version, shard(state.weights, count, number), optimizer, best)
