# SPDX-License-Identifier: GPL-2.0-only
"""The comments of the C and Python files that git knows."""

import ast
import io
import re
import subprocess
import tokenize
from pathlib import Path

C_TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)


def c_comments(text):
    """The comments of C source, each with the line where it begins."""
    for token in C_TOKEN.finditer(text):
        if token.group().startswith("/"):
            yield text.count("\n", 0, token.start()) + 1, token.group()


def docstrings(text):
    """The docstrings of Python source, each with its line."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            yield node.body[0].lineno, node.body[0].value.value


def python_comments(text):
    """The comments and docstrings of Python source, each with the line where it begins."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    yield from docstrings(text)


def is_python(path):
    """By suffix, or by the interpreter line of a script without one."""
    if path.suffix:
        return path.suffix == ".py"
    with open(path, "rb") as file:
        return re.match(rb"#!.*python", file.readline()) is not None


def comments(path):
    """The comments of a file; none if the file is neither C nor Python."""
    if path.suffix in (".c", ".h"):
        return c_comments(path.read_text(encoding="utf-8"))
    if path.is_file() and is_python(path):
        return python_comments(path.read_text(encoding="utf-8"))
    return ()


def listed(folders):
    """The files that git knows below the folders."""
    names = subprocess.run(["git", "ls-files", "-z", "--", *folders], check=True, capture_output=True, text=True)
    return [Path(name) for name in names.stdout.split("\0") if name and Path(name).is_file()]
