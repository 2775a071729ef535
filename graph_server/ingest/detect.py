"""Which file is meant, and which format it has: by content, and never a guess between two."""

import difflib
import zipfile
from pathlib import Path
from types import ModuleType

from common import plugins
from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.archives import file_names
from graph_server.ingest.foreign import foreign_error

FORMATS = "graph_server.datasets"
BUNDLED_FOLDER = Path(__file__).parents[1] / "datasets" / "bundled"


def bundled_names() -> tuple[str, ...]:
    """Datasets that come with the package."""
    return tuple(sorted(file.stem for file in BUNDLED_FOLDER.glob("*.npz")))


def is_bundled_name(path: str) -> bool:
    """A text without slash or dot means a dataset that comes with the package."""
    return not {"/", "\\", "."} & set(path)


def locate(options: DatasetSpec, base_folder: Path) -> Path:
    """The file or folder on this machine. Relative paths start at `base_folder`."""
    if is_bundled_name(options.path) and options.path in bundled_names():
        return BUNDLED_FOLDER / f"{options.path}.npz"
    if "://" in options.path:
        raise DatasetError(
            what=f"{options.path}: not in this version",
            why="datasets are read from this machine",
            fix="copy the dataset here and give its path",
        )
    path = base_folder / Path(options.path).expanduser()
    if path.exists():
        return path
    known = bundled_names()
    near = difflib.get_close_matches(options.path, known, n=1)
    raise DatasetError(
        what=f"{path} does not exist",
        why=f"{options.path!r} is neither a path from {base_folder} nor a bundled name ({', '.join(known)})",
        fix=f"did you mean {near[0]}?" if near else "correct dataset.path",
    )


def find_format(options: DatasetSpec, path: Path) -> tuple[str, ModuleType]:
    """The one format that reads this path.

    Raises DatasetError when none or several match, SpecError when `options.format` names none.
    """
    if options.format != "auto":
        chosen = plugins.load(FORMATS, options.format)
        if not chosen.detect(path):
            raise DatasetError(
                what=f"{path} is not in the format {options.format}: {describe(path)}",
                why=f"looked for {chosen.LOOKS_FOR}",
                fix="set dataset.format: auto, or give the right path",
            )
        return options.format, chosen
    formats = {name: plugins.load(FORMATS, name) for name in plugins.names(FORMATS)}
    matching = [name for name, module in formats.items() if module.detect(path)]
    if len(matching) == 1:
        return matching[0], formats[matching[0]]
    looked_for = "; ".join(module.LOOKS_FOR for module in formats.values())
    if matching:
        raise DatasetError(
            what=f"{path} looks like {' and like '.join(matching)}",
            why="two formats would read it differently",
            fix=f"set dataset.format to {' or '.join(matching)}",
        )
    if (known := foreign_error(path)) is not None:
        raise known
    raise DatasetError(
        what=f"{path} has no known format: {describe(path)}",
        why=f"looked for {looked_for}",
        fix="convert it to one of these, or add a file to graph_server/datasets/",
    )


def describe(path: Path) -> str:
    """What lies there, for an error's reader."""
    if path.is_dir():
        names = sorted(file.name for file in path.iterdir())
        return f"a folder with {', '.join(names[:12]) or 'nothing in it'}{', ...' if len(names) > 12 else ''}"
    if zipfile.is_zipfile(path):
        names = file_names(path)
        listed = ", ".join(names[:12]) or "no files that can be listed"
        return f"an archive with {listed}{', ...' if len(names) > 12 else ''}"
    return f"a file of {path.stat().st_size} bytes"
