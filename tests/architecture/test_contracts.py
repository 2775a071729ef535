"""The floors of the house: who may import whom. The contracts stand in pyproject.toml."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp

from tests.architecture.tree import ROOMS, ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
FLOORS = next(contract["layers"] for contract in SETTINGS["contracts"] if contract["id"] == "common-floors")
ABOVE_THE_GROUND = {f"common.{name}" for floor in FLOORS for name in re.findall(r"\w+", floor)}


def test_every_import_contract_is_kept():
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_contracts_see_every_room_and_ignore_nothing():
    packages = {room for room in ROOMS if (ROOT / room / "__init__.py").is_file()}
    assert packages <= set(SETTINGS["root_packages"])
    assert not [contract["id"] for contract in SETTINGS["contracts"] if "ignore_imports" in contract]


def test_the_ground_rests_on_nothing():
    """What the contract of common/ does not put on a floor is ground, and imports nothing that has one."""
    graph = grimp.build_graph("common", cache_dir=None)
    ground = graph.find_children("common") - ABOVE_THE_GROUND
    assert "common.errors" in ground
    climbs = [
        " -> ".join(chain)
        for module in sorted(ground)
        for above in sorted(ABOVE_THE_GROUND)
        for chain in graph.find_shortest_chains(module, above, as_packages=True)
    ]
    assert not climbs
