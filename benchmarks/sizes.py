"""Graphs of the sizes of well-known ones, made by the generator, and the files in which contestants take them.

    size        vertices, edges (each direction counts), features, classes    after
    arxiv       169,343    2.3 million    128   40                            ogbn-arxiv
    reddit      232,965    115 million    602   41                            Reddit
    products    2,449,029  124 million    100   47                            ogbn-products
    small       20,000     0.4 million     64   10
    pubmed      19,717     89 thousand    500    3                            PubMed
    cora        2,708      10.6 thousand  1433   7                            Cora

Sizes, shares of the masks and the skew of degrees are like those; the graphs themselves are not. Ids have no order.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.graphs import Recipe, write
from benchmarks.modes import generated_graphs
from common.job_setup import derive_programs
from common.job_spec import JobSpec
from graph_server.graph.csr import offsets
from graph_server.graph.cut import num_intervals_auto
from graph_server.graph.folder_reader import SUFFIX
from local_cloud.prepare import widest_task_input

SIZES: Mapping[str, Recipe] = {
    # Edges that are drawn: after loops and repeats have fallen away, as many are left as the table says.
    "arxiv": Recipe("blocks", 169_343, 1_158_800, 128, 40, train=0.54, valid=0.18),
    "reddit": Recipe("blocks", 232_965, 58_600_000, 602, 41, train=0.66, valid=0.1),
    "products": Recipe("blocks", 2_449_029, 61_875_000, 100, 47, train=0.08, valid=0.02),
    "small": Recipe("blocks", 20_000, 200_700, 64, 10, train=0.5, valid=0.25),
    "pubmed": Recipe("blocks", 19_717, 44_340, 500, 3, train=0.003, valid=0.025),
    "cora": Recipe("blocks", 2_708, 5_297, 1433, 7, train=0.052, valid=0.185),
}


def csr_file(recipe: Recipe) -> Path:
    """For peers: an .npz with indptr [V + 1] int64 and indices [E] int32, the sources of each vertex's in-edges. The
    graph is symmetric, so they are its targets, too. It is made once."""
    folder = write(recipe, generated_graphs())
    path = folder.with_suffix(".csr.npz")
    if not path.exists():
        edges = np.load(folder / "edges.npy", mmap_mode="r")
        keys = edges[1] * recipe.num_vertices
        keys += edges[0]
        keys.sort()
        np.remainder(keys, recipe.num_vertices, out=keys)
        indptr = offsets(np.bincount(edges[1], minlength=recipe.num_vertices))
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".npz", delete=False) as unfinished:
            np.savez(unfinished, indptr=indptr, indices=keys.astype(np.int32))
        os.replace(unfinished.name, path)
    return path


def num_edges(recipe: Recipe) -> int:
    """Each direction counts."""
    return int(np.load(write(recipe, generated_graphs()) / "edges.npy", mmap_mode="r").shape[1])


def graph_folder(recipe: Recipe, spec: JobSpec) -> Path:
    """For us: the graph folder that `dorylus convert` makes for such a job, so that no run reads and cuts anew."""
    source = write(recipe, generated_graphs())
    intervals = _num_intervals(recipe, spec)
    path = source.parent / f"{source.name}-{intervals}{SUFFIX}"
    if not path.exists():
        command = [str(Path(sys.executable).with_name("dorylus")), "convert", str(source), str(path)]
        subprocess.run([*command, "--num-intervals", str(intervals)], check=True, stdout=subprocess.DEVNULL)
    return path


def _num_intervals(recipe: Recipe, spec: JobSpec) -> int:
    if spec.cut.num_intervals != "auto":
        return spec.cut.num_intervals
    programs = derive_programs(spec, num_features=recipe.num_features, num_classes=recipe.num_classes)
    return num_intervals_auto(recipe.num_vertices, num_edges(recipe), widest_task_input(programs))
