"""The rules of the house that no linter knows. Each test collects the places that break one, as `file:line what`."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.architecture.tree import functions, python_files, room_files, text, tree

UNPICKLER = Path("graph_server/ingest/restricted_unpickler.py")
READERS_OF_THE_ENVIRONMENT = ("cli", "local_cloud", "lambda_functions", "benchmarks", "infra")

Rule = Callable[[ast.AST], str | None]


def broken(files: tuple[Path, ...], rule: Rule) -> list[str]:
    return [
        f"{path}:{getattr(node, 'lineno', 1)} {fault}"
        for path in files
        for node in ast.walk(tree(path))
        if (fault := rule(node)) is not None
    ]


def outside(*rooms: str) -> tuple[Path, ...]:
    return tuple(path for path in room_files() if path.parts[0] not in rooms)


def called(node: ast.AST) -> str | None:
    """The name of what is called, when the node is a call of a plain name."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


def test_only_the_command_line_prints():
    assert not broken(outside("cli", "benchmarks"), lambda node: "print" if called(node) == "print" else None)


def test_only_the_restricted_unpickler_knows_pickle():
    def rule(node: ast.AST) -> str | None:
        names = imported(node) & {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
        return f"imports {', '.join(sorted(names))}" if names else None

    assert not broken(tuple(path for path in room_files() if path != UNPICKLER), rule)


def imported(node: ast.AST) -> set[str]:
    """The packages that an import statement names."""
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
        return {node.module.split(".")[0]}
    return set()


def test_numpy_never_unpickles():
    def rule(node: ast.AST) -> str | None:
        is_true = isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant) and node.value.value is True
        return "allow_pickle=True" if is_true and node.arg == "allow_pickle" else None

    assert not broken(room_files(), rule)


def test_there_is_no_metaclass():
    def rule(node: ast.AST) -> str | None:
        if not isinstance(node, ast.ClassDef):
            return None
        of_type = any(isinstance(base, ast.Name) and base.id == "type" for base in node.bases)
        named = any(keyword.arg == "metaclass" for keyword in node.keywords)
        return f"class {node.name}" if of_type or named else None

    assert not broken(room_files(), rule)


def test_no_kernel_may_regroup_a_sum():
    """fastmath, and the LLVM flags it stands for, change the last bit of a result from one machine to the next."""

    def rule(node: ast.AST) -> str | None:
        if isinstance(node, ast.keyword) and node.arg == "fastmath":
            harmless = isinstance(node.value, ast.Constant) and node.value.value is False
            return None if harmless else "fastmath"
        is_flag = isinstance(node, ast.Constant) and node.value in {"reassoc", "fast", "contract", "arcp", "afn"}
        return f"the flag {node.value!r}" if is_flag and isinstance(node, ast.Constant) else None

    assert not broken(room_files(), rule)


def test_keyword_arguments_are_not_passed_through():
    relays = [
        f"{path}:{function.lineno} {function.name}"
        for path in room_files()
        for function in functions(path)
        if function.args.kwarg is not None
        for node in ast.walk(function)
        if isinstance(node, ast.keyword) and node.arg is None
        if isinstance(node.value, ast.Name) and node.value.id == function.args.kwarg.arg
    ]
    assert not relays


def test_nothing_is_dispatched_by_getattr():
    def rule(node: ast.AST) -> str | None:
        if not isinstance(node, ast.Call) or called(node.func) != "getattr" or not isinstance(node.func, ast.Call):
            return None
        named = len(node.func.args) > 1 and isinstance(node.func.args[1], ast.Constant)
        return None if named else "getattr(...)(...)"

    assert not broken(room_files(), rule)


def test_there_is_no_global_statement():
    assert not broken(room_files(), lambda node: "global" if isinstance(node, ast.Global) else None)


def test_only_entrances_read_the_environment():
    def rule(node: ast.AST) -> str | None:
        found = isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
        return f"os.{node.attr}" if found and isinstance(node, ast.Attribute) else None

    inner = tuple(path for path in outside(*READERS_OF_THE_ENVIRONMENT) if path.name != "__main__.py")
    assert not broken(inner, rule)


def test_every_module_says_what_it_is_for():
    silent = [
        str(path)
        for path in python_files()
        if ast.get_docstring(tree(path)) is None and not (path.name == "__init__.py" and not text(path).strip())
    ]
    assert not silent


def test_nothing_is_left_to_be_done_in_a_comment():
    mark = re.compile("\\b(TO" + "DO|FIX" + "ME|XX" + "X)\\b")
    assert not [
        f"{path}:{line} {words}" for path in python_files() for line, words in comments(path) if mark.search(words)
    ]


def comments(path: Path) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text(path)).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def test_at_most_six_arguments():
    """Commands, whose arguments are the user's flags, and kernels, which take bare arrays, may have more."""

    def exempt(path: Path, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        return path.name.endswith("_kernels.py") or any(
            re.search("njit|kernel|command|option", ast.unparse(mark)) for mark in function.decorator_list
        )

    long_lists = [
        f"{path}:{function.lineno} {function.name}: {len(names)}"
        for path in room_files()
        for function in functions(path)
        if not exempt(path, function)
        if len(names := argument_names(function)) > 6
    ]
    assert not long_lists


def argument_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [argument.arg for argument in arguments if argument.arg not in {"self", "cls"}]
