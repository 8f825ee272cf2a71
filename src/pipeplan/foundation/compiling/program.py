"""Read kernels from Python source without importing it: modules, functions, records, and their types in C.

============================= ===========================================================================================
Python                        C
============================= ===========================================================================================
``int, float, bool``          ``i64, double, bool``
``Ints, Ints32, Floats ..``   a row, ``struct {i64* data; i64 length;}``; ``ROWS`` has the types of its items
``Annotated[Ints, shape]``    the row; where Python calls a function, its length is checked: see ``writer.checks``
a ``NamedTuple``              a struct of its fields, with records within it in place; functions receive its address
``-> tuple[...]``             a struct of the parts
an alias of ``Callable``      the address of a function; ``Sequence[Alias]`` is a row of them
============================= ===========================================================================================
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn

from pipeplan.foundation.errors import InputError

INT, FLOAT, BOOL, NOTHING = "i64", "double", "bool", "void"

NUMBERS = (BOOL, INT, FLOAT)
"""Types of numbers, narrowest first: where two meet, the result has the wider one."""

ROWS = {
    "Ints": (INT, "i64", "i8"),
    "Ints32": (INT, "int", "i4"),
    "Floats": (FLOAT, "double", "f8"),
    "Bools": (BOOL, "unsigned char", "b1"),
}
"""Types of rows by their annotations: type of an item, its type in memory, and NumPy's name of the latter."""

SCALARS = {"int": INT, "float": FLOAT, "bool": BOOL, "None": NOTHING}
"""Other types by their annotations."""

HEAD = """\
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define INLINED inline __attribute__((always_inline))
typedef long long i64;
static INLINED i64 mod_i(i64 a, i64 b) { i64 r = a % b; return r != 0 && (r ^ b) < 0 ? r + b : r; }
static INLINED i64 div_i(i64 a, i64 b) { i64 q = a / b; return a % b != 0 && (a ^ b) < 0 ? q - 1 : q; }
static INLINED i64 min_i(i64 a, i64 b) { return b < a ? b : a; }
static INLINED i64 max_i(i64 a, i64 b) { return b > a ? b : a; }
static INLINED double min_d(double a, double b) { return b < a ? b : a; }
static INLINED double max_d(double a, double b) { return b > a ? b : a; }
static INLINED i64 parts(i64 a, i64 b) { return b > 0 && a % b == 0 ? a / b : -1; }
"""
"""First lines of every C file: ``%``, ``//``, ``min`` and ``max`` as in Python. ``parts`` is an exact quotient, or -1."""


class KernelError(InputError):
    """A kernel that cannot be written as C. The message has the file, the line, the problem and the remedy."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")


class Field(NamedTuple):
    """A field of a record or a parameter: its type, and its shape, such as ``ranks + 1``; see ``writer.checks``."""

    type: str
    shape: str = ""


@dataclass(eq=False)
class Module:
    """A Python file: the functions, constants and records that it defines, and the names that it imports from modules."""

    path: Path
    name: str
    definitions: dict[str, Definition] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, node: ast.stmt) -> None:
        """Add what a statement at the top level defines."""
        match node:
            case ast.FunctionDef(name=name):
                self.definitions[name] = Function(self, node)
            case ast.ClassDef(name=name, bases=[ast.Name(id="NamedTuple")]):
                self.definitions[name] = node
            case ast.ImportFrom(module=str(home), names=names, level=0):
                self.imports |= {alias.asname or alias.name: (home, alias.name) for alias in names}
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self.definitions[name] = value
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Call(func=ast.Name(id="range"), args=[_])):
                self.definitions |= {ast.unparse(part): ast.Constant(place) for place, part in enumerate(parts)}

    def forget_changed(self, tree: ast.Module) -> None:
        """Remove names that the module binds more than once: their values are known only at run time."""
        bound = Counter(name for node in tree.body for name in _bound(node))
        bound.update(name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)
        for name in [name for name, times in bound.items() if times > 1]:
            self.definitions.pop(name, None)
            self.imports.pop(name, None)


@dataclass(eq=False)
class Function:
    """A function of a kernel. ``writes`` is True if it writes into rows, itself or by what it calls; ``text`` is C."""

    module: Module
    node: ast.FunctionDef
    parameters: dict[str, Field] = field(default_factory=dict)
    returns: str = NOTHING
    variables: dict[str, str] = field(default_factory=dict)
    writes: bool = False
    text: str = ""

    @property
    def name(self) -> str:
        """Name in C, unique among all modules."""
        return f"{self.module.name.replace('.', '_')}__{self.node.name}"


Definition = Function | ast.expr | ast.ClassDef
"""A function, the value of a constant, or a record."""


class Program:
    """All that one C file is written from, read from folders of Python source.

    ``records``, ``tuples`` and ``callables`` are the types that functions use; ``order`` has the translated functions, each
    one after those that it calls.
    """

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        self.modules: dict[str, Module] = {}
        self.records: dict[str, dict[str, Field]] = {}
        self.homes: dict[str, Module] = {}
        self.tuples: dict[str, str] = {}
        self.callables: dict[str, tuple[list[str], str]] = {}
        self.order: list[Function] = []

    def read(self, name: str, path: Path) -> Module:
        """Return a module, read from its file at the first call."""
        if name not in self.modules:
            self.modules[name] = module = Module(path, name)
            try:
                tree = ast.parse(path.read_bytes())
            except SyntaxError as error:
                raise KernelError(path, error.lineno or 1, f"{error.msg}: correct it") from None
            for node in tree.body:
                module.add(node)
            module.forget_changed(tree)
        return self.modules[name]

    def named(self, module: Module, name: str) -> tuple[Module, Definition] | None:
        """Return the definition of a name and the module that has it; None if it is not in one of the folders."""
        if name in module.definitions:
            return module, module.definitions[name]
        if "." in name:
            front, name = name.split(".", 1)
            imported = self.imported(".".join(module.imports.get(front, ("", ""))))
        else:
            home, name = module.imports.get(name, ("", name))
            imported = self.imported(home)
        return self.named(imported, name) if imported else None

    def imported(self, name: str) -> Module | None:
        """Return the module of a name; None if it is not in one of the folders."""
        for folder in self.folders:
            path = folder.joinpath(*name.split("."))
            for file in (path.with_suffix(".py"), path / "__init__.py"):
                if name and file.is_file():
                    return self.read(name, file)
        return None

    def field_of(self, module: Module, node: ast.expr | None, line: int) -> Field:
        """Return the type and shape of an annotation. Raises KernelError if it is missing or has no type in C."""
        match node:
            case ast.Subscript(
                value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[inner, ast.Constant(value=shape)])
            ):
                shape = re.sub(r"\b[A-Z]\w*", lambda name: self.constant_of(module, name[0], node), str(shape))
                return Field(self.field_of(module, inner, line).type, shape)
            case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=parts)):
                types = [self.field_of(module, part, line).type for part in parts]
                if not all(part in NUMBERS or part in ROWS for part in types):
                    self.refuse(module, node, line)
                type_ = f"({', '.join(types)})"
                self.tuples.setdefault(type_, f"tuple{len(self.tuples)}")
                return Field(type_)
            case ast.Subscript(value=ast.Name(id="Sequence"), slice=ast.Name() as item):
                return Field(f"{self.field_of(module, item, line).type}[]")
            case ast.Constant() | ast.Name() if (name := ast.unparse(node)) in {*ROWS, *SCALARS}:
                return Field(SCALARS.get(name, name))
            case ast.Name(id=name):
                match self.named(module, name):
                    case home, ast.ClassDef() as record:
                        return Field(self._record(home, record))
                    case home, ast.Subscript(value=ast.Name(id="Callable"), slice=ast.Tuple(elts=[takes, returns])):
                        parts = takes.elts if isinstance(takes, ast.List) else []
                        types = [self.field_of(home, part, line).type for part in parts]
                        alias = types, self.field_of(home, returns, line).type
                        if self.callables.setdefault(name, alias) != alias:
                            self.refuse(module, node, line)
                        return Field(name)
        self.refuse(module, node, line)

    def refuse(self, module: Module, node: ast.expr | None, line: int) -> NoReturn:
        """Raise the error of an annotation that is missing or has no type in C."""
        problem = "missing annotation" if node is None else f"unsupported annotation {ast.unparse(node)}"
        expected = f"{', '.join([*SCALARS, *ROWS])}, a NamedTuple, or a tuple of them"
        raise KernelError(module.path, getattr(node, "lineno", line), f"{problem}: write {expected}")

    def constant_of(self, module: Module, name: str, node: ast.expr) -> str:
        """Return the number of a constant in a shape."""
        match self.named(module, name):
            case _, ast.Constant(value=int() as number):
                return str(number)
        raise KernelError(module.path, node.lineno, f"{name} is not a constant: write its number where it is defined")

    def _record(self, module: Module, node: ast.ClassDef) -> str:
        if node.name not in self.records:
            fields = {
                ast.unparse(part.target): self.field_of(module, part.annotation, part.lineno)
                for part in node.body
                if isinstance(part, ast.AnnAssign)
            }
            # After its annotations are read: C needs the definitions of the records within it first.
            self.records[node.name] = fields
            self.homes[node.name] = module
        if self.homes[node.name] is not module:
            message = f"{self.homes[node.name].path} has another record {node.name}: use another name"
            raise KernelError(module.path, node.lineno, message)
        return node.name

    def c_type(self, type_: str) -> str:
        """Return the type of a variable in C; variables hold the addresses of records."""
        return f"const {type_}*" if type_ in self.records else self.tuples.get(type_, type_.replace("[]", "_row"))

    def parts(self, type_: str) -> list[str]:
        """Return the types of the parts of a tuple."""
        return type_[1:-1].split(", ")

    def text(self, exported: Iterable[str]) -> str:
        """Return the C file: types, functions, and the texts of what it exports."""
        lines = [HEAD]
        lines += [f"typedef struct {{ {stored}* data; i64 length; }} {name};" for name, (_, stored, _) in ROWS.items()]
        lines += [f"typedef struct {name} {name};" for name in self.records]
        for name, (takes, returns) in self.callables.items():
            lines.append(f"typedef {self.c_type(returns)} (*{name})({', '.join(map(self.c_type, takes))});")
            lines.append(f"typedef struct {{ {name}* data; i64 length; }} {name}_row;")
        for name, fields in self.records.items():
            lines.append(f"struct {name} {{ {members(fields)} }};")
        for type_, name in self.tuples.items():
            parts = " ".join(f"{self.c_type(part)} part{place};" for place, part in enumerate(self.parts(type_)))
            lines.append(f"typedef struct {{ {parts} }} {name};")
        return "\n".join([*lines, *(function.text for function in self.order), *exported, ""])


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module binds."""
    for part in [node] if isinstance(node, ast.FunctionDef | ast.ClassDef) else ast.walk(node):
        match part:
            case ast.FunctionDef(name=str(name)) | ast.ClassDef(name=str(name)) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=alias, name=name):
                yield alias or name


def signature(program: Program, function: Function, name: str) -> str:
    """Return the head of a function in C, under another name."""
    takes = [f"{program.c_type(part.type)} {key}_" for key, part in function.parameters.items()]
    return f"{program.c_type(function.returns)} {name}({', '.join(takes) or 'void'})"


def members(fields: Mapping[str, Field]) -> str:
    """Return fields as the members of a struct. A bool takes 64 bits there, so that all members are words."""
    types = {name: INT if part.type == BOOL else part.type.replace("[]", "_row") for name, part in fields.items()}
    return " ".join(f"{type_} {name}_;" for name, type_ in types.items())
