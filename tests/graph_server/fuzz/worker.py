"""One process that reads wounded datasets of one format until its time is up: NAME SECONDS SEED FOLDER [--keep].

It lives under a limit of address space. What ends it, or what it says, is the finding; the input lies in FOLDER/input.
An answer not heard before makes its input worth wounding further: answers stand for coverage.
"""

import dataclasses
import faulthandler
import importlib
import json
import os
import re
import resource
import shutil
import sys
import time
import traceback
from pathlib import Path
from random import Random
from types import ModuleType

import numpy as np

from common import plugins
from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.dataset import apply_policies
from graph_server.ingest.detect import FORMATS, find_format
from graph_server.ingest.raw_graph import Array, RawGraph
from tests.conformance import dataset_proofs as proofs
from tests.graph_server.fuzz.mutations import Files, wounded
from tests.graph_server.fuzz.seeds import Seed, keep, seeds

ROOM_BYTES = 1 << 30
"""Of address space, beyond what the process has when it begins: inputs are a few kilobytes."""
MOST_RESIDENT = 400 << 20
"""Of memory that one input may really take."""
MOST_SECONDS = 10
"""For one input."""
MOST_KEPT, LARGEST_KEPT = 20, 8_000
"""Inputs of a format's corpus, and their bytes."""


@dataclasses.dataclass
class Told:
    """What came of the inputs; the smallest input for each answer."""

    num_inputs: int = 0
    num_read: int = 0
    answers: dict[str, Seed] = dataclasses.field(default_factory=dict)


def read_once(module: ModuleType, seed: Seed, folder: Path, random: Random) -> str:
    """Where the reader refused, or what it noted. Any exception but a DatasetError is a finding."""
    path = folder / seed.path
    options = DatasetSpec(
        path=str(path),
        allow_pickle=random.random() < 0.7,
        drop_unknown_edges=random.random() < 0.3,
        directed=random.choice((True, False, "auto")),
        nan=random.choice(("error", "zero", "mean")),
    )
    try:
        if random.random() < 0.1:
            find_format(options, path)
        if not module.detect(path):
            return "not detected"
        raw = module.read(path, options)
        read = raw
        if raw.labels is None:
            rows = np.arange(raw.num_nodes)
            raw = dataclasses.replace(raw, labels=rows % 2, features=_features(raw))
        notes = apply_policies(raw, options, name="fuzzed").report["notes"]
        if read.num_edges:
            proofs.prove_consistent(read)
    except DatasetError as error:
        return " < ".join(_place(each) for each in (error, error.__cause__) if each is not None)
    return "read: " + ", ".join(sorted({re.sub(r"[^a-z ]", "", note)[-20:] for note in notes}))


def _features(raw: RawGraph) -> Array:
    return np.ones((raw.num_nodes, 1)) if raw.features is None else raw.features


def _place(error: BaseException) -> str:
    """Which line raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else str(error)


def write(seed: Seed, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in seed.files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def fuzz(name: str, seconds: float, number: int, folder: Path) -> Told:
    module, random, told = plugins.load(FORMATS, name), Random(number), Told()
    population = seeds(name, folder / "example")
    deadline = time.monotonic() + seconds
    for seed in population:
        _answer(module, seed, folder / "input", (random, told))
    while time.monotonic() < deadline:
        seed = random.choice(population)
        files: Files = wounded(random, seed.files)
        if sum(map(len, files.values())) > 2 << 20:
            continue
        changed = Seed(seed.path, files)
        if _answer(module, changed, folder / "input", (random, told)):
            population.append(changed)
    return told


def _answer(module: ModuleType, seed: Seed, folder: Path, state: tuple[Random, Told]) -> bool:
    """Whether it is an answer not heard before."""
    random, told = state
    write(seed, folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
    answer = read_once(module, seed, folder, random)
    faulthandler.cancel_dump_traceback_later()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if grown > MOST_RESIDENT:
        raise AssertionError(f"{grown >> 20} MB of memory were taken for it: {answer}")
    told.num_inputs += 1
    told.num_read += answer.startswith("read")
    size = sum(map(len, seed.files.values()))
    known = told.answers.get(answer)
    if known is None or size < sum(map(len, known.files.values())):
        told.answers[answer] = seed
    return known is None


def limit_address_space() -> None:
    for package in ("numba", "pyarrow.csv", "pyarrow.parquet", "pyarrow.compute", "scipy.sparse.csgraph", "yaml"):
        importlib.import_module(package)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> None:
    name, seconds, number, folder = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    faulthandler.enable()
    limit_address_space()
    told = fuzz(name, seconds, number, folder)
    if "--keep" in sys.argv:
        small = [seed for seed in told.answers.values() if sum(map(len, seed.files.values())) < LARGEST_KEPT]
        keep(name, Random(0).sample(small, min(MOST_KEPT, len(small))))
    counts = {"inputs": told.num_inputs, "read": told.num_read, "answers": sorted(told.answers)}
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()
