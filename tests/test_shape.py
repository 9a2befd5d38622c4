"""The shape of the package: short functions, and folders that say what is in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import vecfill

ROOT = Path(vecfill.__file__).parent
LONGEST = 60
"""Lines of a body without its docstring: what a screen shows."""

FOLDERS = sorted(path.parent for path in ROOT.rglob("__init__.py") if path.parent != ROOT)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Return all functions but those that are compiled, which call nothing that is not inlined."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            marks = "".join(ast.unparse(mark) for mark in node.decorator_list)
            if "compiled" not in marks and "njit" not in marks:
                yield node


def n_lines(function: ast.FunctionDef) -> int:
    """Return how many lines the body of a function takes without its docstring."""
    first, *more = function.body
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    body = more if is_text else function.body
    return 1 + (body[-1].end_lineno or 0) - body[0].lineno if body else 0


def test_no_function_is_longer_than_a_screen():
    too_long = {
        f"{path.relative_to(ROOT)}: {function.name}": n_lines(function)
        for path in ROOT.rglob("*.py")
        for function in functions(ast.parse(path.read_text("utf-8")))
        if n_lines(function) > LONGEST
    }
    assert too_long == {}


def test_commands_are_short_with_all_their_options():
    too_long = {}
    for path in (ROOT / "cli").glob("*.py"):
        for function in functions(ast.parse(path.read_text("utf-8"))):
            text = ast.get_docstring(function) or ""
            n_all = 1 + (function.end_lineno or 0) - function.lineno - len(text.splitlines())
            if n_all > LONGEST:
                too_long[function.name] = n_all
    assert too_long == {}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_says_what_is_in_it(folder):
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {name for name in modules if f"`{name}`" not in text} == set()
