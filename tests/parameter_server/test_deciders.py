"""Deciders see no clock, no socket and no other role."""

import ast
from pathlib import Path

import pytest

import parameter_server

SHELLS = {"role", "server", "checkpoint", "checkpoint_keeper", "clock_keeper", "__main__"}
DECIDERS = [path for path in sorted(Path(parameter_server.__file__).parent.glob("*.py")) if path.stem not in SHELLS]
FORBIDDEN = {"asyncio", "socket", "time", "os", "boto3", "random", "graph_server", "lambda_functions", "local_cloud"}


@pytest.mark.parametrize("path", DECIDERS, ids=lambda path: path.stem)
def test_deciders_cannot_see_the_clock_or_a_socket(path):
    nodes = list(ast.walk(ast.parse(path.read_text())))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert not {name.split(".")[0] for name in imported} & FORBIDDEN
