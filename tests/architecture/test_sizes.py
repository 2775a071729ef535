"""Files and functions stay of a size that can be read in one sitting."""

import statistics

from tests.architecture.tree import Function, functions, python_files, room_files, text


def length(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def test_no_file_is_over_400_lines():
    long_files = {str(path): count for path in python_files() if (count := text(path).count("\n")) > 400}
    assert not long_files, "split them by purpose"


def test_no_function_is_over_60_lines():
    long_functions = {
        f"{path}:{function.lineno} {function.name}": length(function)
        for path in room_files()
        for function in functions(path)
        if length(function) > 60
    }
    assert not long_functions


def test_nine_functions_of_ten_have_at_most_35_lines():
    lengths = [length(function) for path in room_files() for function in functions(path)]
    assert statistics.quantiles(lengths, n=10)[-1] <= 35


def test_no_file_is_named_after_nothing():
    nameless = {"utils.py", "util.py", "helpers.py", "helper.py", "misc.py"}
    assert not [str(path) for path in python_files() if path.name in nameless]
