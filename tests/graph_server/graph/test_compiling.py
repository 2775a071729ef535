"""Compiled kernels: what is kept for the next process, what makes it be compiled anew, and for which processors."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROBE = Path("tests/graph_server/graph/kernel_probe.py")


def run(environment: dict[str, str], *arguments: str, root: Path = ROOT) -> str:
    variables = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=variables, cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def probe(environment: dict[str, str], root: Path = ROOT) -> tuple[str, float]:
    """(digest of the results, share of the kernels that were found on disk)."""
    said = json.loads(run(environment, str(PROBE), root=root))
    return said["digest"], said["found"] / said["kernels"]


def test_the_next_process_finds_all_kernels_and_an_edit_of_what_they_are_made_of_is_noticed(tmp_path):
    for part in (Path("common"), Path("graph_server"), PROBE.parent):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    kept = {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    first, found = probe(kept, tmp_path)
    assert found == 0
    assert probe(kept, tmp_path) == (first, 1)

    vectors = tmp_path / "graph_server/graph/vectors.py"
    edited = vectors.read_text().replace("ir.IRBuilder.fadd", "ir.IRBuilder.fsub")
    assert edited != vectors.read_text()
    vectors.write_text(edited)
    second, found = probe(kept, tmp_path)
    assert found == 0
    assert second != first


def test_where_nothing_can_be_written_every_process_compiles():
    nowhere = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator", "NUMBA_CACHE_DIR": "/dev/null/kept"}
    assert probe(nowhere) == (probe({})[0], 0)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names processors of x86")
@pytest.mark.parametrize("processor", ["x86-64", "x86-64-v3"])
def test_processors_with_narrower_registers_give_the_same_bits(processor, tmp_path):
    """The first has registers of 16 bytes, and no fused multiply-add; the second has both wider ones and that."""
    plain = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    assert probe(plain)[0] == probe({})[0]


FOR_OTHERS = """
import sys
import llvmlite.binding as llvm
from numba import njit
from numba.core.types import Array, UniTuple, bool_, float32, int32, int64, none
from graph_server.graph.sum_kernels import sum_kernel

kernel = njit(error_model="numpy")(sum_kernel(41, "float32").py_func)
vector, rows = Array(float32, 1, "C"), Array(float32, 2, "C")
indptr, columns, weights, loops = Array(int64, 1, "C"), Array(int32, 1, "C"), vector, Array(bool_, 1, "C")
kernel.compile((indptr, columns, weights, loops, rows, int64, vector, rows, UniTuple(int64, 2)))
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
triple, processor = sys.argv[1:]
machine = llvm.Target.from_triple(triple).create_target_machine(cpu=processor, opt=3)
module = llvm.parse_assembly(next(iter(kernel.inspect_llvm().values())))
module.triple, module.data_layout = triple, str(machine.target_data)
passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(3))
passes.getModulePassManager().run(module, passes)
sys.stdout.write(machine.emit_assembly(module))
"""
"""Numba has not optimised the module yet, so it is still anybody's."""


@pytest.mark.parametrize(
    ("triple", "processor", "add", "fused"),
    [
        ("x86_64-unknown-linux-gnu", "x86-64-v4", r"vaddps\s.*%zmm", r"vfn?m(add|sub)"),
        ("x86_64-unknown-linux-gnu", "x86-64-v3", r"vaddps\s.*%ymm", r"vfn?m(add|sub)"),
        ("aarch64-unknown-linux-gnu", "neoverse-n1", r"fadd\s+v\d+\.4s", r"\bfn?m(la|ls|add|sub)\b"),
    ],
)
def test_one_source_makes_avx512_avx2_and_neon_and_none_is_fused(triple, processor, add, fused):
    code = run({"NUMBA_OPT": "0"}, "-c", FOR_OTHERS, triple, processor)
    assert re.search(add, code)
    assert not re.search(fused, code)
