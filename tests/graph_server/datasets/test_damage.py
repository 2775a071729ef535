"""Damaged files of every format: a consistent graph, or an error of ours. No crash, no other error, no hang."""

import functools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import plugins
from graph_server.ingest.detect import FORMATS
from tests.conformance import dataset_proofs as proofs
from tests.examples import examples

NAMES = plugins.names(FORMATS)


@functools.cache
def example_of(name: str, folder: Path) -> tuple[Path, dict[str, bytes]]:
    """Where the example would be, and its files."""
    path = proofs.example(plugins.load(FORMATS, name), folder / name)
    return path, proofs.contents(folder / name)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=examples(25))
def test_a_file_with_a_wound(tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject):
    """A few bytes of one file are replaced, cut out or put in."""
    folder = tmp_path_factory.getbasetemp() / "wounds"
    path, files = example_of(name, folder)
    wounded = data.draw(st.sampled_from(sorted(files)))
    whole = files[wounded]
    place = data.draw(st.integers(0, len(whole)))
    lost = data.draw(st.integers(0, 12))
    new = data.draw(
        st.one_of(st.binary(max_size=12), st.sampled_from([b"\xff" * 8, b"9" * 19, b"-1", b"\n", b",", b"nan"]))
    )
    (folder / name / wounded).write_bytes(whole[:place] + new + whole[place + lost :])
    try:
        proofs.attempt(plugins.load(FORMATS, name), path)
    finally:
        (folder / name / wounded).write_bytes(whole)
