"""A file is a plug-in: its name is what the job spec says, its module what is run.

This module knows no folder by itself: `common.models`, `graph_server.datasets` and others are handed in.
Listing a folder imports nothing in it.
"""

import difflib
import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

from common.errors import SpecError


def names(package: str) -> tuple[str, ...]:
    """The plug-ins of a package, sorted: its module files but `base` and those that begin with an underscore."""
    found = importlib.util.find_spec(package)
    folders = found.submodule_search_locations if found is not None else None
    if folders is None:
        raise SpecError(f"{package} is not a package", fix="name a folder of modules, such as common.models")
    files = {file.stem for folder in folders for file in Path(folder).glob("*.py")}
    return tuple(sorted(name for name in files if not name.startswith("_") and name != "base"))


def load(package: str, name: str) -> ModuleType:
    """The module of one plug-in. SpecError names the nearest and lists all when there is none of that name."""
    known = names(package)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise SpecError(
            f"{name!r} is not found in {package.replace('.', '/')}/",
            why=f"there are: {', '.join(known) or 'none'}",
            fix=f"did you mean {near[0]}?" if near else "use one of these names",
        )
    return importlib.import_module(f"{package}.{name}")
