"""A folder is a shelf: what stands in it is found by name, listed without being imported, and nothing else is."""

import sys
import textwrap
from pathlib import Path

import pytest

from common import plugins
from common.errors import SpecError


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "shelf_of_models"
    folder.mkdir()
    for name in ("__init__", "_private", "base", "gcn", "gat"):
        (folder / f"{name}.py").write_text("raise RuntimeError('imported')\n" if name == "gat" else "WHO = __name__\n")
    (folder / "notes.txt").write_text("not a module")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "shelf_of_models"
    for name in [name for name in sys.modules if name.startswith("shelf_of_models")]:
        del sys.modules[name]


def test_names_are_the_files_sorted_and_nothing_is_imported(shelf):
    assert plugins.names(shelf) == ("gat", "gcn")
    assert f"{shelf}.gcn" not in sys.modules


def test_a_new_file_is_a_new_plugin(shelf, tmp_path):
    (tmp_path / shelf / "my_model.py").write_text("WHO = 'mine'\n")
    assert "my_model" in plugins.names(shelf)
    assert plugins.load(shelf, "my_model").WHO == "mine"


def test_load_gives_the_module(shelf):
    module = plugins.load(shelf, "gcn")
    assert module.WHO == module.__name__ == f"{shelf}.gcn"


def test_an_unknown_name_is_answered_with_the_nearest_and_the_list(shelf):
    with pytest.raises(SpecError) as caught:
        plugins.load(shelf, "gcm")
    assert str(caught.value) == textwrap.dedent("""\
        'gcm' is not found in shelf_of_models/
          why: there are: gat, gcn
          fix: did you mean gcn?""")


@pytest.mark.parametrize("name", ["base", "_private", "__init__", "notes", "os", "..gcn", ""])
def test_what_is_not_a_plugin_is_not_loaded(shelf, name):
    with pytest.raises(SpecError, match="is not found in shelf_of_models/"):
        plugins.load(shelf, name)


@pytest.mark.parametrize("package", ["no_such_package_here", "json.decoder"])
def test_a_package_must_be_one(package):
    with pytest.raises(SpecError, match=f"{package} is not a package"):
        plugins.names(package)
