"""Write a function of this package as the source of a notebook cell that needs nothing of it.

The sample class hands in the exercises' own right and wrong answers. They are objects here, with
helpers and references behind them; a notebook needs text. `standalone` writes that text: the
function, and before it every definition of this package that it uses, under a private name.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

PACKAGE = "autograder"


def standalone(function: Callable[..., Any], name: str) -> str:
    """Return code that defines `name` to do what `function` does, without importing this package.

    Parameters
    ----------
    function : callable
        A function, a lambda, an instance with a call, or a partial.
    name : str
        What it is called in the code.

    Raises
    ------
    ValueError
        If it uses something that cannot be written down.
    """
    writer = _Writer(name)
    if isinstance(function, FunctionType):
        node = _as_def(_node_of(function.__code__, _module_of(function)), name)
        code = ast.unparse(writer.transformed(node, function))
    else:
        code = f"{name} = {writer.value(function)}"
    if not writer.definitions:
        return "\n\n\n".join(filter(None, ["\n".join(writer.imports.values()), code]))
    body = "\n\n".join(["\n".join(writer.imports.values()), *writer.definitions, code])
    made = textwrap.indent(f"{body.strip()}\n\nreturn {name}", "    ")
    return f"def _make_{name}():\n{made}\n\n\n{name} = _make_{name}()"


class _Writer:
    """Collects imports and definitions, in the order in which they are needed."""

    def __init__(self, taken: str) -> None:
        self.taken = taken
        self.imports: dict[str, str] = {}
        self.definitions: list[str] = []
        self.names: dict[tuple[str, str], str] = {}

    def transformed(self, node: ast.stmt | ast.expr, function: FunctionType) -> Any:
        """Return a function's syntax with every name from outside it resolved."""
        closure = inspect.getclosurevars(function).nonlocals
        return _Resolve(self, _module_of(function), closure, node).visit(node)

    def value(self, value: Any) -> str:
        """Return an expression for a value that a function refers to."""
        if value is None or isinstance(value, bool | int | float | str):
            return repr(value)
        if isinstance(value, tuple):
            return f"({''.join(self.value(part) + ', ' for part in value)})"
        if isinstance(value, np.ndarray):
            self.imports["np"] = "import numpy as np"
            return f"np.array({value.tolist()!r}, dtype={str(value.dtype)!r})"
        if isinstance(value, functools.partial):
            self.imports["partial"] = "from functools import partial"
            given = [*map(self.value, value.args)]
            given += [f"{key}={self.value(v)}" for key, v in value.keywords.items()]
            return f"partial({', '.join([self.value(value.func), *given])})"
        if not _is_ours(getattr(value, "__module__", None) or type(value).__module__):
            return self.imported(value)
        if isinstance(value, FunctionType):
            return self.function(value)
        if isinstance(value, type):
            return self.define(sys.modules[value.__module__], value.__name__)
        return self.instance(value)

    def instance(self, value: Any) -> str:
        """Return a name for an object of a class of this package, made with its attributes."""
        kind = self.value(type(value))
        attributes = {key: self.value(inner) for key, inner in vars(value).items()}
        name = self.fresh(type(value).__name__.lower())
        lines = [f"{name} = {kind}.__new__({kind})"]
        lines += [f"{name}.{key} = {inner}" for key, inner in attributes.items()]
        self.definitions.append("\n".join(lines))
        self.names[name, ""] = name
        return name

    def imported(self, value: Any) -> str:
        """Return a name for something that another package has."""
        module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if name is None or getattr(sys.modules.get(module or "numpy"), name, None) is not value:
            raise ValueError(f"cannot write {value!r} into a notebook")
        alias = f"_{name}"
        self.imports[alias] = f"from {module or 'numpy'} import {name} as {alias}"
        return alias

    def function(self, function: FunctionType) -> str:
        """Return an expression for a function of this package."""
        module = _module_of(function)
        if getattr(module, function.__name__, None) is function:
            return self.define(module, function.__name__)
        node = _node_of(function.__code__, module)
        if isinstance(node, ast.Lambda):
            return f"({ast.unparse(self.transformed(node, function))})"
        self.names[function.__qualname__, str(id(function))] = name = self.fresh(function.__name__)
        node = _as_def(node, name)
        self.definitions.append(ast.unparse(self.transformed(node, function)))
        return name

    def define(self, module: ModuleType, name: str) -> str:
        """Return the private name of something a module of this package binds, and define it."""
        key = (module.__name__, name)
        if key in self.names:
            return self.names[key]
        statement = _binding(module, name)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self.names[key] = self.follow(statement, name)
            return self.names[key]
        statement = copy.deepcopy(statement)
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            self.names[key] = statement.name = self.fresh(name)
        else:
            for target in _targets(statement):
                self.names[module.__name__, target.id] = target.id = self.fresh(target.id)
        statement = _Resolve(self, module, {}, statement).visit(statement)
        self.definitions.append(ast.unparse(ast.fix_missing_locations(statement)))
        return self.names[key]

    def follow(self, statement: ast.Import | ast.ImportFrom, name: str) -> str:
        """Take over an import, or go to where this package defines what it imports."""
        alias = next(a for a in statement.names if (a.asname or a.name.split(".")[0]) == name)
        if isinstance(statement, ast.ImportFrom) and _is_ours(statement.module):
            return self.define(sys.modules[statement.module], alias.name)
        bound = f"_{name}" if name == self.taken else name
        single = copy.deepcopy(statement)
        single.names = [ast.alias(alias.name, bound if bound != alias.name else None)]
        code = ast.unparse(single)
        if self.imports.setdefault(bound, code) != code:
            raise ValueError(f"two imports are called {bound!r}")
        return bound

    def fresh(self, name: str) -> str:
        """Return a private name that is not used yet."""
        start = candidate = f"_{name.lstrip('_')}"
        count = 1
        while candidate in self.names.values() or candidate in self.imports:
            count += 1
            candidate = f"{start}_{count}"
        return candidate


class _Resolve(ast.NodeTransformer):
    """Replaces names from outside a piece of code, and drops docstrings and annotations."""

    def __init__(
        self, writer: _Writer, module: ModuleType, closure: dict[str, Any], root: ast.AST
    ) -> None:
        self.writer, self.module, self.closure = writer, module, closure
        self.local = {
            node.id
            for node in ast.walk(root)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        self.local |= {node.arg for node in ast.walk(root) if isinstance(node, ast.arg)}
        self.local |= {
            node.name
            for node in ast.walk(root)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node is not root
        }
        self.local |= {
            alias.asname or alias.name
            for node in ast.walk(root)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.local or not isinstance(node.ctx, ast.Load):
            return node
        if node.id in self.closure:
            return ast.parse(self.writer.value(self.closure[node.id]), mode="eval").body
        if hasattr(self.module, node.id):
            return ast.Name(self.writer.define(self.module, node.id), ast.Load())
        if hasattr(builtins, node.id):
            return node
        raise ValueError(f"{self.module.__name__} has no {node.id!r}")

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id not in self.local:
            owner = self.closure.get(node.value.id, getattr(self.module, node.value.id, None))
            if isinstance(owner, ModuleType) and _is_ours(owner.__name__):
                return ast.Name(self.writer.define(owner, node.attr), ast.Load())
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node


def _is_ours(module: str | None) -> bool:
    return module is not None and module.split(".")[0] == PACKAGE


def _module_of(function: FunctionType) -> ModuleType:
    return sys.modules[function.__module__]


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[module]))


def _binding(module: ModuleType, name: str) -> ast.stmt:
    """Return the statement that binds a name at the top of a module."""
    for statement in reversed(_tree(module.__name__).body):
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            if statement.name == name:
                return statement
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            if name in {alias.asname or alias.name.split(".")[0] for alias in statement.names}:
                return statement
        elif name in {target.id for target in _targets(statement)}:
            return statement
    raise ValueError(f"{module.__name__}: nothing at its top binds {name!r}")


def _targets(statement: ast.stmt) -> list[ast.Name]:
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    else:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [node for t in targets for node in ast.walk(t) if isinstance(node, ast.Name)]


def _node_of(code: CodeType, module: ModuleType) -> ast.FunctionDef | ast.Lambda:
    """Return the syntax that a code object was compiled from.

    Several lambdas may begin on one line. The right one is the smallest whose body holds every
    instruction.
    """
    places = [p for p in code.co_positions() if None not in p and (p[0], p[2]) != (p[1], p[3])]
    found = []
    for node in ast.walk(_tree(module.__name__)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if node.name == code.co_name and first == code.co_firstlineno:
                return node
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>":
            start = (node.body.lineno, node.body.col_offset)
            end = (node.body.end_lineno, node.body.end_col_offset)
            if all(start <= (p[0], p[2]) and (p[1], p[3]) <= end for p in places):
                found.append((end[0] - start[0], len(ast.unparse(node)), node))
    if not found:
        raise ValueError(f"{module.__name__}: the source of {code.co_name} was not found")
    return min(found, key=lambda item: item[:2])[2]


def _as_def(node: ast.FunctionDef | ast.Lambda, name: str) -> ast.FunctionDef:
    """Return a copy of a function's syntax under another name."""
    node = copy.deepcopy(node)
    if isinstance(node, ast.Lambda):
        arguments, body = node.args, [ast.Return(node.body)]
    else:
        arguments, body = node.args, node.body
    made = ast.parse(f"def {name}(): pass").body[0]
    made.args, made.body = arguments, body
    return ast.fix_missing_locations(made)
