"""The text of a function in Python: its check, which runs nothing of it, and its code.

Two forms of a body
  1. It returns a value: `return a * 2`. It is the body of a function with the arguments' names. So is one that defines nothing.
  2. It defines functions: `def f(a): …`. The one with the name of the SQL function, or the one that HANDLER names, is called.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import msgspec

from barnabas.functions.definition import BadFunction, Function

_OUTER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
FILE = "<function {}>"


def check(function: Function) -> Function:
    """The function with its handler found. Raises BadFunction."""
    tree = _parsed(function)
    wanted = function.handler or function.name
    if not _returns(tree) and any(_defines(node, wanted) for node in _outer_nodes(tree)):
        _compiled(function, tree)
        return msgspec.structs.replace(function, handler=wanted)
    if function.handler:
        raise BadFunction(f'the body does not define the handler "{wanted}", or returns a value itself')
    if not _returns(tree) and any(isinstance(node, _OUTER) for node in _outer_nodes(tree)):
        raise BadFunction(f'the body neither returns a value nor defines "{wanted}"')
    _check_names(function)
    _compiled(function, _wrapped(function, tree))
    return function


def loaded(function: Function) -> Callable[..., Any]:
    """Runs the text of a function, and gives what is called for each row, or for all. Any error of the text passes."""
    tree = _parsed(function)
    names: dict[str, Any] = {"__name__": FILE.format(function.name), "SD": {}}
    if function.handler:
        exec(_compiled(function, tree), names)
        found = names.get(function.handler)
    else:
        exec(_compiled(function, _wrapped(function, tree)), names)
        found = names.get("_body")
    if not callable(found):
        raise BadFunction(f'"{function.handler}" is not a function')
    return found  # type: ignore[no-any-return]  # the code of a user


def _parsed(function: Function) -> ast.Module:
    try:
        return ast.parse(_dedented(function.body), FILE.format(function.name))
    except SyntaxError as error:
        raise _bad(error) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadFunction(f"the body cannot be read: {error or type(error).__name__}") from None


def _dedented(body: str) -> str:
    """The text without the margin that all its lines have; the first line may stand beside the quotes. Lines keep their numbers."""
    lines = body.replace("\r\n", "\n").split("\n")
    rest = [len(each) - len(each.lstrip()) for each in lines[1:] if each.strip() and not each.lstrip().startswith("#")]
    margin = min(rest, default=0)
    if lines[0].strip():
        first = lines[0].lstrip()
        is_open = first.split("#")[0].rstrip().endswith(":")
        return "\n".join([first, *(each[0 if is_open else margin :] for each in lines[1:])])
    return "\n".join(["", *(each[margin:] for each in lines[1:])])


def _bad(error: SyntaxError) -> BadFunction:
    place = f"line {error.lineno}" if error.lineno else "the body"
    return BadFunction(f"syntax error in {place} of the function: {error.msg}", (error.text or "").rstrip() or None)


def _compiled(function: Function, tree: ast.Module) -> CodeType:
    try:
        return compile(tree, FILE.format(function.name), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _bad(error) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadFunction(f"the body cannot be compiled: {error or type(error).__name__}") from None


def _returns(tree: ast.Module) -> bool:
    return any(isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) for node in _outer_nodes(tree))


def _outer_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, _OUTER):
            yield from _outer_nodes(node)


def _check_names(function: Function) -> None:
    for each in function.arguments:
        if each.name and not each.name.isidentifier():
            raise BadFunction(f'the argument "{each.name}" is no name in Python', "give it another name, or define a function")


def _wrapped(function: Function, tree: ast.Module) -> ast.Module:
    """The text as the body of a function; its lines keep their numbers. `args` has all arguments, as in PL/Python."""
    names = [each.name or f"_{place}" for place, each in enumerate(function.arguments)]
    outer = ast.parse(f"def _body({', '.join(names)}):\n    args = [{', '.join(names)}]")
    made = outer.body[0]
    assert isinstance(made, ast.FunctionDef)
    future = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    made.body += [node for node in tree.body if node not in future]
    return ast.Module([*future, made], [])


def _defines(node: ast.AST, name: str) -> bool:
    match node:
        case ast.FunctionDef(name=found) | ast.ClassDef(name=found):
            return found == name
        case ast.Assign(targets=targets):
            return any(isinstance(each, ast.Name) and each.id == name for each in targets)
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return any((each.asname or each.name) == name for each in names)
    return False


def fault(function: Function, error: BaseException) -> tuple[str, str]:
    """An error of the code in one line, and the lines of the function's text that it came through."""
    kind = type(error).__name__
    text = str(error).split("\n")[0]
    file = FILE.format(function.name)
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
    lines = _dedented(function.body).split("\n")
    told = []
    for each in frames[-10:]:
        number = each.lineno or 0
        code = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        told.append(f"line {number}: {code}")
    if isinstance(error, SyntaxError) and error.lineno:
        told = [f"line {error.lineno}"]
    place = f" (line {frames[-1].lineno} of the function)" if frames else ""
    return f"{kind}: {text}{place}" if text else f"{kind}{place}", "\n".join(told)
