"""How large the code is, and how it is written.

    python benchmarks/shape.py [FOLDER ...]

Counts lines of code (no blank lines, comments and docstrings), modules, tests of types of sources
and predictors, long functions, names that are pronouns or participles, and comments in the modules
that need them. Several checkouts are shown beside each other.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path

HARD = ("trust", "model", "search", "solve")
"""Folders whose comments are counted."""

WORDS = """
each other others own rest few some many most all_ both one ones another such same it its they them
this that these those what which who whose here there found kept told given asked wanted made meant
taken left seen held got gone went come came done said lent shown drawn brought bought built tried
used begun ended moved raised lowered filled joined stacked mixed weighed judged proved scored
"""
VAGUE = frozenset(WORDS.split())
"""Pronouns, and participles that stand for a value without saying what it is."""

TYPES = re.compile(
    r"isinstance\([^()]*(?:\([^()]*\)[^()]*)*,\s*\(?[^()]*"
    r"(Space|Source|Domain|Predictor|Stack|Fused|KernelRidge|LatentSemantic|Guessed|Linear|Mean|Nearest)"
)


def measured(root: Path) -> dict[str, float | int]:
    """Return the counts of one checkout."""
    modules = sorted((root / "src" / "vecfill").rglob("*.py"))
    lines = comments = hard_lines = vague = names = types = long = 0
    worst: Counter[str] = Counter()
    for path in modules:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        code, remarks = code_and_comments(text, tree)
        lines += code
        if set(HARD).intersection(path.parts):
            hard_lines += code
            comments += remarks
        types += len(TYPES.findall(text))
        for name in assigned(tree):
            names += 1
            if name in VAGUE:
                vague += 1
                worst[name] += 1
        long += sum(length > 60 for length in function_lengths(tree))
    return {
        "modules": len(modules),
        "at the top": len(list((root / "src" / "vecfill").glob("*.py"))),
        "lines of code": lines,
        "lines of files": sum(path.read_text().count("\n") for path in modules),
        "isinstance on sources and predictors": types,
        "functions above 60 lines": long,
        "assigned names": names,
        "pronouns or participles, %": round(100 * vague / names, 1),
        "comments a line in hard folders": round(comments / hard_lines, 3),
        "modules above 400 lines": sum(path.read_text().count("\n") > 400 for path in modules),
        "worst": ", ".join(f"{name} {count}" for name, count in worst.most_common(12)),
    }


def code_and_comments(text: str, tree: ast.Module) -> tuple[int, int]:
    """Count lines with code outside docstrings, and lines with a comment."""
    prose: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    comments: set[int] = set()
    blank = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in blank:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - prose), len(comments)


def assigned(tree: ast.Module) -> list[str]:
    """Return every local name that is bound: targets, loop variables and arguments."""
    names = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            arguments = [*node.posonlyargs, *node.args, *node.kwonlyargs]
            names += [argument.arg for argument in arguments if argument.arg != "self"]
    return names


def function_lengths(tree: ast.Module) -> list[int]:
    """Return the length of each body without docstring; compiled kernels are left out."""
    lengths = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if any("compiled" in ast.unparse(decorator) for decorator in node.decorator_list):
            continue
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if body:
            lengths.append((body[-1].end_lineno or 0) - body[0].lineno + 1)
    return lengths


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, default=[Path()])
    columns = [measured(folder) for folder in parser.parse_args().folders]
    for label in columns[0]:
        print(f"{label:40}" + "".join(f"{column[label]!s:>14}" for column in columns))


if __name__ == "__main__":
    main()
