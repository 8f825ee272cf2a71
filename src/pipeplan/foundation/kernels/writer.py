"""Write kernels as C: all functions of ``*_kernel.py`` in one file, with the types that annotations and values imply.

A kernel is a plain function over numbers and flat arrays. This module reads it as text and imports nothing but the standard
library, so that a build can load it alone. ``docs/explanation/kernels.md`` says which Python a kernel may use;
:class:`KernelError` refuses everything else, with file, line and remedy.

============================= ===========================================================================================
Python                        C
============================= ===========================================================================================
``int, float, bool``          ``i64, double, bool``
``Ints, Ints32, Floats ..``   a row, ``struct {i64* data; i64 length;}``; its items have the width that the name says
``Annotated[Ints, shape]``    the row; where Python calls a function, its length is checked: see :func:`checks`
a ``NamedTuple``              a struct of its fields, with records within it in place; functions receive its address
``-> tuple[...]``             a struct of the parts
an alias of ``Callable``      the address of a function; ``Sequence[Alias]`` is a row of them
``a // b``, ``a % b``         rounded down, as in Python; C rounds towards 0
``for x in range(...)``       a loop whose limits are read once, as in Python
============================= ===========================================================================================

A function is translated again and again until the types of its variables no longer change; the last text counts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, NoReturn

INT, FLOAT, BOOL, NOTHING = "i64", "double", "bool", "void"

NUMBERS = (BOOL, INT, FLOAT)
"""Types of numbers, narrowest first: where two meet, the result has the wider one."""

ROWS = {
    "Ints": (INT, "i64", "i8"),
    "Ints32": (INT, "int", "i4"),
    "Floats": (FLOAT, "double", "f8"),
    "Bools": (BOOL, "unsigned char", "b1"),
}
"""Types of rows by their annotations: the type of an item, how it lies in memory, and numpy's name of that."""

SCALARS = {"int": INT, "float": FLOAT, "bool": BOOL, "None": NOTHING}
"""Other types by their annotations."""

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip

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
"""First lines of every file; all but the last of the functions do what Python's operators and functions do."""


class KernelError(Exception):
    """A kernel uses what cannot be compiled: file, line, what is wrong and what to write instead."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")


class Term(NamedTuple):
    """An expression in C, and its type; None while a variable in it has none yet."""

    text: str
    type: str | None


class Field(NamedTuple):
    """A field of a record or a parameter: its type, and what it must be: the shape of a row, such as ``ranks + 1``."""

    type: str
    shape: str = ""


@dataclass(eq=False)
class Module:
    """A file: its functions, constants and records, and where its imported names come from."""

    path: Path
    name: str
    functions: dict[str, Function] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    records: dict[str, ast.ClassDef] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)

    def add(self, node: ast.stmt) -> None:
        """Note what a statement defines."""
        match node:
            case ast.FunctionDef(name=name):
                self.functions[name] = Function(self, node)
            case ast.ClassDef(name=name, bases=[ast.Name(id="NamedTuple")]):
                self.records[name] = node
            case ast.ImportFrom(module=str(home), names=names, level=0):
                self.imports |= {alias.asname or alias.name: (home, alias.name) for alias in names}
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self.constants[name] = value
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Call(func=ast.Name(id="range"))):
                self.constants |= {ast.unparse(part): ast.Constant(place) for place, part in enumerate(parts)}


@dataclass(eq=False)
class Function:
    """A function of a kernel: its parameters, what it returns, and the types of its variables."""

    module: Module
    node: ast.FunctionDef
    parameters: dict[str, Field] = field(default_factory=dict)
    returns: str = NOTHING
    variables: dict[str, str] = field(default_factory=dict)
    calls: list[Function] = field(default_factory=list)
    writes: bool = False
    text: str = ""

    @property
    def name(self) -> str:
        """Its name in C, which the function of no other module has."""
        return f"{self.module.name.replace('.', '_')}__{self.node.name}"


class Program:
    """Kernels and everything that they use, read from folders of Python source."""

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        self.modules: dict[str, Module] = {}
        self.records: dict[str, dict[str, Field]] = {}
        self.tuples: dict[str, str] = {}
        self.callables: dict[str, tuple[list[str], str]] = {}
        self.order: list[Function] = []

    def read(self, name: str, path: Path) -> Module:
        """Return the module of a name, which is read from its file once."""
        if name not in self.modules:
            self.modules[name] = module = Module(path, name)
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                module.add(node)
        return self.modules[name]

    def named(self, module: Module, name: str) -> tuple[Module, Function | ast.expr | ast.ClassDef] | None:
        """Return what a name of a module stands for, with the module that defines it; None for a name from elsewhere."""
        for names in (module.functions, module.constants, module.records):
            if name in names:
                return module, names[name]
        if "." in name:
            front, name = name.split(".", 1)
            imported = self.imported(".".join(module.imports.get(front, ("", ""))))
        else:
            home, name = module.imports.get(name, ("", name))
            imported = self.imported(home)
        return self.named(imported, name) if imported else None

    def imported(self, name: str) -> Module | None:
        """Return the module of a name if it lies in one of the folders."""
        for folder in self.folders:
            path = folder.joinpath(*name.split("."))
            for file in (path.with_suffix(".py"), path / "__init__.py"):
                if name and file.is_file():
                    return self.read(name, file)
        return None

    def field_of(self, module: Module, node: ast.expr | None, line: int) -> Field:
        """Return what an annotation stands for. Raises KernelError for none, and for one that has no type in C."""
        match node:
            case ast.Subscript(
                value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[inner, ast.Constant(value=shape)])
            ):
                shape = re.sub(r"\b[A-Z]\w*", lambda name: self.constant_of(module, name[0], node), str(shape))
                return Field(self.field_of(module, inner, line).type, shape)
            case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=parts)):
                type_ = f"({', '.join(self.field_of(module, part, line).type for part in parts)})"
                self.tuples.setdefault(type_, f"tuple{len(self.tuples)}")
                return Field(type_)
            case ast.Subscript(value=ast.Name(id="Sequence"), slice=ast.Name() as item):
                return Field(f"{self.field_of(module, item, line).type}[]")
            case ast.Constant(value=None):
                return Field(NOTHING)
            case ast.Name(id=name) if name in ROWS or name in SCALARS:
                return Field(SCALARS.get(name, name))
            case ast.Name(id=name):
                match self.named(module, name):
                    case home, ast.ClassDef() as record:
                        return Field(self._record(home, record))
                    case home, ast.Subscript(value=ast.Name(id="Callable"), slice=ast.Tuple(elts=[takes, returns])):
                        parts = takes.elts if isinstance(takes, ast.List) else []
                        types = [self.field_of(home, part, line).type for part in parts]
                        self.callables[name] = types, self.field_of(home, returns, line).type
                        return Field(name)
        text = "nothing" if node is None else ast.unparse(node)
        expected = f"{', '.join([*SCALARS, *ROWS])}, a NamedTuple, or a tuple of them"
        raise KernelError(module.path, getattr(node, "lineno", line), f"annotated with {text}: write {expected}")

    def constant_of(self, module: Module, name: str, node: ast.expr) -> str:
        """Return the number that a name in a shape stands for."""
        match self.named(module, name):
            case _, ast.Constant(value=int() as number):
                return str(number)
        raise KernelError(module.path, node.lineno, f"{name} is no constant: write its number where it is defined")

    def _record(self, module: Module, node: ast.ClassDef) -> str:
        if node.name not in self.records:
            fields = [
                part for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            ]
            types = {ast.unparse(part.target): self.field_of(module, part.annotation, part.lineno) for part in fields}
            # After the records within it, as C wants them.
            self.records[node.name] = types
        return node.name

    def require(self, function: Function, callers: tuple[Function, ...] = ()) -> Function:
        """Translate a function and those that it calls, which come before it in the file."""
        if function in callers:
            raise KernelError(function.module.path, function.node.lineno, "a function that calls itself: write a loop")
        if function not in self.order:
            arguments = function.node.args
            if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
                raise KernelError(function.module.path, function.node.lineno, "write plain parameters without defaults")
            line = function.node.lineno
            for item in arguments.args:
                function.parameters[item.arg] = self.field_of(function.module, item.annotation, line)
            function.returns = self.field_of(function.module, function.node.returns, line).type
            Translation.of(self, function, (*callers, function))
            self.order.append(function)
        return function

    def c_type(self, type_: str) -> str:
        """Return a type as that of a variable: a record is the address of one."""
        return f"const {type_}*" if type_ in self.records else self.tuples.get(type_, type_.replace("[]", "_row"))

    def parts(self, type_: str) -> list[str]:
        """Return the types of the parts of a tuple."""
        return type_[1:-1].split(", ")

    def text(self, exported: Iterable[str]) -> str:
        """Return the file: types, the functions, and these texts of what it exports."""
        lines = [HEAD]
        rows = {name: stored for name, (_, stored, _) in ROWS.items()}
        lines += [f"typedef struct {{ {stored}* data; i64 length; }} {name};" for name, stored in rows.items()]
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


class Translation:
    """A function on its way into C; see the module."""

    def __init__(self, program: Program, function: Function, callers: tuple[Function, ...]) -> None:
        self.program, self.function, self.callers = program, function, callers
        self.assigned = {node.id for node in ast.walk(function.node) if _is_stored(node) and isinstance(node, ast.Name)}
        self.lines: list[str] = []
        self.rows: dict[str, tuple[str, str]] = {}
        self.temporaries = 0

    @classmethod
    def of(cls, program: Program, function: Function, callers: tuple[Function, ...]) -> None:
        """Set the text of a function in C, and the types of its variables."""
        function.writes = any(_is_stored(node) and isinstance(node, ast.Subscript) for node in ast.walk(function.node))
        before = None
        while before != function.variables:
            before = dict(function.variables)
            translation = cls(program, function, callers)
            translation.block(function.node.body, 1)
        types = {name: program.c_type(type_) for name, type_ in function.variables.items()}
        variables = [f"    {type_} {name}_;" for name, type_ in types.items()]
        # No function writes into a record: the address of a row within it is read once.
        rows = [f"    {stored}* const {name} = {text};" for text, (stored, name) in translation.rows.items()]
        head = (
            f"static {'INLINED ' if _is_inlined(function.node) else ''}{signature(program, function, function.name)} {{"
        )
        function.text = "\n".join([head, *variables, *rows, *translation.lines, "}", ""])

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        """Raise the error of a part of the function."""
        raise KernelError(self.function.module.path, getattr(node, "lineno", self.function.node.lineno), message)

    # Statements

    def put(self, depth: int, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * depth + text)

    def block(self, statements: Sequence[ast.stmt], depth: int) -> None:
        """Write statements."""
        for statement in statements:
            self.statement(statement, depth)

    def statement(self, node: ast.stmt, depth: int) -> None:
        """Write a statement."""
        match node:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call() as call):
                self.put(depth, f"{self.expression(call).text};")
            case ast.Assign(targets=targets, value=value):
                self.assign(targets, value, depth)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign([target], value, depth)
            case ast.AugAssign(target=target, op=operator, value=value):
                self.assign([target], ast.copy_location(ast.BinOp(_loaded(target), operator, value), node), depth)
            case ast.If(test=test, body=body, orelse=orelse):
                self.put(depth, f"if ({self.condition(test)}) {{")
                self.block(body, depth + 1)
                if orelse:
                    self.put(depth, "} else {")
                    self.block(orelse, depth + 1)
                self.put(depth, "}")
            case ast.While(test=test, body=body, orelse=[]):
                self.put(depth, f"while ({self.condition(test)}) {{")
                self.block(body, depth + 1)
                self.put(depth, "}")
            case ast.For(target=ast.Name() as target, iter=iterated, body=body, orelse=[]):
                self.loop(target, iterated, body, depth)
            case ast.Return(value=None):
                self.put(depth, "return;")
            case ast.Return(value=ast.Tuple(elts=parts)):
                texts = ", ".join(term.text for term in self.in_order(node, parts))
                self.put(depth, f"return ({self.program.c_type(self.function.returns)}){{{texts}}};")
            case ast.Return(value=ast.expr() as value):
                self.put(depth, f"return {self.expression(value).text};")
            case ast.Break():
                self.put(depth, "break;")
            case ast.Continue():
                self.put(depth, "continue;")
            case _:
                self.fail(node, f"'{ast.unparse(node).splitlines()[0]}' is no statement that a kernel may use")

    def assign(self, targets: list[ast.expr], value: ast.expr, depth: int) -> None:
        """Assign a value or the parts of a tuple to targets, all of them computed before the first is assigned."""
        first = targets[0]
        if len(targets) == 1 and not isinstance(first, ast.Tuple):
            term = self.passed(value)
            self.put(depth, f"{self.target(first, term)} = {term.text};")
            return
        if isinstance(first, ast.Tuple) and isinstance(value, ast.Tuple):
            parts = [self.temporary(term, depth) for term in self.in_order(value, value.elts)]
        elif isinstance(first, ast.Tuple):
            term = self.temporary(self.expression(value), depth)
            types = self.program.parts(term.type) if term.type else [None] * len(first.elts)
            parts = [Term(f"{term.text}.part{place}", type_) for place, type_ in enumerate(types)]
        else:
            parts = [self.temporary(self.passed(value), depth)] * len(targets)
        for target, part in zip(first.elts if isinstance(first, ast.Tuple) else targets, parts, strict=True):
            self.put(depth, f"{self.target(target, part)} = {part.text};")

    def temporary(self, term: Term, depth: int) -> Term:
        """Store a value in a new variable of this place."""
        self.temporaries += 1
        name = f"t{self.temporaries}"
        self.put(depth, f"{self.program.c_type(term.type or INT)} {name} = {term.text};")
        return Term(name, term.type)

    def target(self, node: ast.expr, value: Term) -> str:
        """Return what is assigned to, of which a variable gets the type of the value or a wider one."""
        if isinstance(node, ast.Name) and value.type is not None:
            parameter = self.function.parameters.get(node.id)
            before = parameter.type if parameter else self.function.variables.get(node.id)
            type_ = self.joined(node, before, value.type)
            if parameter is None:
                self.function.variables[node.id] = type_
            elif type_ != parameter.type:
                self.fail(node, f"parameter {node.id} is {parameter.type} and gets {value.type}: use another name")
        elif not isinstance(node, ast.Name | ast.Subscript):
            self.fail(node, f"'{ast.unparse(node)}' cannot be assigned to: write into a row or a variable")
        return self.expression(node).text

    def loop(self, target: ast.Name, iterated: ast.expr, body: list[ast.stmt], depth: int) -> None:
        """Write a loop over a range or over the items of a row."""
        self.temporaries += 1
        count = f"k{self.temporaries}"
        if isinstance(iterated, ast.Call) and ast.unparse(iterated.func) == "range":
            limits = [term.text for term in self.in_order(iterated, iterated.args)]
            start, stop, step = ["0", *limits, "1"] if len(limits) == 1 else [*limits, "1"][:3]
            head = f"i64 {count} = {start}, {count}_stop = {stop}, {count}_step = {step}"
            test = f"{count}_step < 0 ? {count} > {count}_stop : {count} < {count}_stop"
            step, value = f"{count} += {count}_step", Term(count, INT)
        else:
            row = self.expression(iterated)
            head, test, step = f"i64 {count} = 0", f"{count} < {row.text}.length", f"{count}++"
            value = self.expression(ast.Subscript(iterated, ast.Constant(0)))._replace(text=f"{row.text}.data[{count}]")
        self.put(depth, f"for ({head}; {test}; {step}) {{")
        self.put(depth + 1, f"{self.target(target, value)} = {value.text};")
        self.block(body, depth + 1)
        self.put(depth, "}")

    # Expressions

    def joined(self, node: ast.AST, first: str | None, second: str | None) -> str:
        """Return the type of a value that is of one type or the other."""
        if first in NUMBERS and second in NUMBERS:
            return max(first, second, key=NUMBERS.index)
        if first and second and first != second:
            self.fail(node, f"'{ast.unparse(node)}' is {first} and {second}: use two names")
        return first or second or ""

    def in_order(self, node: ast.AST, parts: Sequence[ast.expr]) -> list[Term]:
        """Return the parts of an expression, of which one may write: C leaves their order open, Python does not."""
        if sum(map(self.writes, parts)) > 1:
            self.fail(node, f"two calls that write in '{ast.unparse(node)}': assign the first of them before")
        return [self.passed(part) for part in parts]

    def writes(self, node: ast.expr) -> bool:
        """Return True if an expression calls a function that writes into a row."""
        calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
        return any(
            isinstance(call.func, ast.Subscript) or getattr(self.called(call), "writes", False) for call in calls
        )

    def called(self, node: ast.Call) -> Function | None:
        """Return the function that a call names, translated; None for those of Python."""
        match self.program.named(self.function.module, ast.unparse(node.func)):
            case _, Function() as function:
                called = self.program.require(function, self.callers)
                self.function.writes |= called.writes
                return called
        return None

    def condition(self, node: ast.expr) -> str:
        """Return a condition, which must be one: Python's empty rows and zeros are no conditions in C."""
        term = self.expression(node)
        if term.type not in (BOOL, None):
            self.fail(node, f"'{ast.unparse(node)}' is no condition: compare it, for example with 0")
        return term.text

    def passed(self, node: ast.expr) -> Term:
        """Return an argument, or what is assigned: a record within a record by its address."""
        term = self.expression(node)
        within = isinstance(node, ast.Attribute) and term.type in self.program.records
        return term._replace(text=f"&{term.text}") if within else term

    def expression(self, node: ast.expr) -> Term:
        """Return an expression, in brackets where an operator could bind otherwise."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return _constant(value)
            case ast.Name(id=name) if name in self.function.parameters:
                return Term(f"{name}_", self.function.parameters[name].type)
            case ast.Name(id=name) if name in self.assigned:
                return Term(f"{name}_", self.function.variables.get(name))
            case ast.Name(id=name):
                match self.program.named(self.function.module, name):
                    case _, (ast.Constant() | ast.UnaryOp()) as number:
                        return _constant(ast.literal_eval(number))
                self.fail(node, f"{name} is neither a variable nor a constant: write its number where it is defined")
            case ast.Attribute(value=value, attr=name):
                record = self.expression(value)
                fields = self.program.records.get(record.type or "", {})
                if record.type is None or name in fields:
                    pointer = isinstance(value, ast.Name)
                    return Term(f"{record.text}{'->' if pointer else '.'}{name}", fields[name].type if fields else None)
            case ast.Subscript(value=value, slice=index) if not isinstance(index, ast.Slice | ast.UnaryOp | ast.Tuple):
                row = self.expression(value)
                item = ROWS[row.type][0] if row.type in ROWS else row.type and row.type.removesuffix("[]")
                if row.type is None or item != row.type:
                    return Term(f"{self.row(value, row)}[{self.expression(index).text}]", item)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Term(f"!({self.condition(operand)})", BOOL)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                term = self.expression(operand)
                return Term(f"-({term.text})", self.joined(node, INT, term.type))
            case ast.BoolOp(op=operator, values=values):
                word = " && " if isinstance(operator, ast.And) else " || "
                return Term(f"({word.join(map(self.condition, values))})", BOOL)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                first, second = self.passed(body), self.passed(orelse)
                text = f"({self.condition(test)} ? {first.text} : {second.text})"
                return Term(text, self.joined(node, first.type, second.type))
            case ast.Compare(left=left, ops=operators, comparators=others) if set(map(type, operators)) <= set(
                OPERATORS
            ):
                if len(others) > 1 and any(map(self.writes, others)):
                    self.fail(node, f"a call that writes in '{ast.unparse(node)}': assign its result before")
                terms = self.in_order(node, [left, *others])
                pairs = zip(terms, operators, terms[1:], strict=False)
                tests = [f"{first.text} {OPERATORS[type(item)]} {second.text}" for first, item, second in pairs]
                return Term(f"({' && '.join(tests)})", BOOL)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
                first, second = self.in_order(node, [left, right])
                return self.arithmetic(node, first, OPERATORS[type(operator)], second)
            case ast.Call(func=ast.Name(id="len"), args=[row]):
                return Term(f"{self.expression(row).text}.length", INT)
            case ast.Call(func=ast.Name(id="int" | "float" | "bool" as name), args=[value]):
                return Term(f"(({SCALARS[name]}){self.expression(value).text})", SCALARS[name])
            case ast.Call(func=ast.Name(id="min" | "max" | "abs" as name), args=arguments, keywords=[]):
                return self.of_numbers(node, name, arguments)
            case ast.Call(args=arguments, keywords=[]):
                return self.call(node, arguments)
        self.fail(node, f"'{ast.unparse(node)}' is nothing that a kernel may use")

    def arithmetic(self, node: ast.expr, first: Term, operator: str, second: Term) -> Term:
        """Return two numbers combined."""
        type_ = self.joined(node, FLOAT if operator == "/" else INT, self.joined(node, first.type, second.type))
        if operator in ("//", "%"):
            if type_ != INT:
                self.fail(node, f"'{operator}' of floats in '{ast.unparse(node)}': use it with ints alone")
            return Term(f"{'div' if operator == '//' else 'mod'}_i({first.text}, {second.text})", INT)
        divided = "(double)" if operator == "/" else ""
        return Term(f"({divided}{first.text} {operator} {second.text})", type_)

    def of_numbers(self, node: ast.Call, name: str, arguments: list[ast.expr]) -> Term:
        """Return the smallest, the largest or the absolute value of numbers."""
        terms = self.in_order(node, arguments)
        type_, text = terms[0].type, terms[0].text
        for term in terms[1:]:
            type_ = self.joined(node, type_, term.type)
        if name == "abs":
            return Term(f"{'fabs' if type_ == FLOAT else 'llabs'}({text})", type_)
        for term in terms[1:]:
            text = f"{name}_{'d' if type_ == FLOAT else 'i'}({text}, {term.text})"
        return Term(text, type_)

    def call(self, node: ast.Call, arguments: list[ast.expr]) -> Term:
        """Return the call of another function, or of one from a row of functions."""
        function = self.called(node)
        if function is not None:
            name, returns = function.name, function.returns
            takes = [parameter.type for parameter in function.parameters.values()]
        else:
            if isinstance(node.func, ast.Name):
                self.fail(node, f"{node.func.id} is no function of a kernel: import it from the file that defines it")
            name, type_ = self.expression(node.func)
            takes, returns = self.program.callables.get(type_ or "", ([], NOTHING))
            self.function.writes = True
        terms = self.in_order(node, arguments)
        if len(terms) != len(takes):
            self.fail(node, f"{ast.unparse(node.func)} takes {len(takes)} arguments, not {len(terms)}")
        for argument, term, type_ in zip(arguments, terms, takes, strict=True):
            if self.joined(argument, type_, term.type) != type_:
                self.fail(argument, f"'{ast.unparse(argument)}' is {term.type}: {ast.unparse(node.func)} takes {type_}")
        return Term(f"{name}({', '.join(term.text for term in terms)})", returns)

    def row(self, node: ast.expr, row: Term) -> str:
        """Return the address of a row's first item; within the record of a parameter it is read at the beginning."""
        text = f"{row.text}.data"
        base = node
        while isinstance(base, ast.Attribute):
            base = base.value
        is_fixed = isinstance(node, ast.Attribute) and getattr(base, "id", "") in self.function.parameters
        if not is_fixed or row.type not in ROWS:
            return text
        return self.rows.setdefault(text, (ROWS[row.type][1], re.sub(r"->|\.", "_", text)))[1]


def _is_stored(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _is_inlined(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "inlined" for decorator in node.decorator_list)


def _loaded(target: ast.expr) -> ast.expr:
    loaded: ast.expr = ast.parse(ast.unparse(target), mode="eval").body
    return ast.copy_location(loaded, target)


def _constant(value: float) -> Term:
    if isinstance(value, bool):
        return Term(str(value).lower(), BOOL)
    return Term(f"{value}LL", INT) if isinstance(value, int) else Term(repr(value), FLOAT)


def signature(program: Program, function: Function, name: str) -> str:
    """Return the head of a function under a name."""
    takes = [f"{program.c_type(part.type)} {key}_" for key, part in function.parameters.items()]
    return f"{program.c_type(function.returns)} {name}({', '.join(takes) or 'void'})"


def members(fields: Mapping[str, Field]) -> str:
    """Return fields as the members of a struct, in which a flag takes a whole word, as everything else does."""
    types = {name: INT if part.type == BOOL else part.type.replace("[]", "_row") for name, part in fields.items()}
    return " ".join(f"{type_} {name};" for name, type_ in types.items())


KINDS = {INT: "q", BOOL: "q", FLOAT: "d", **{name: kind for name, (_, _, kind) in ROWS.items()}}
"""How descriptions name numbers and rows; rows of functions are ``fn``."""


class Leaf(NamedTuple):
    """A number or row that an entry takes: its name, its text in C, and its field."""

    name: str
    text: str
    field: Field

    @property
    def size(self) -> str:
        """The length of a row, or an int itself, as C reads it."""
        return self.text if self.field.type in NUMBERS else f"{self.text}.length"


def leaves(program: Program, name: str, text: str, part: Field) -> Iterator[Leaf]:
    """Yield everything that lies in memory for a parameter or field, records within it in place."""
    if part.type not in program.records:
        yield Leaf(name, text, part)
    for key, inner in program.records.get(part.type, {}).items():
        yield from leaves(program, f"{name}.{key}", f"{text}.{key}", inner)


def entry(program: Program, function: Function) -> str:
    """Return what Python calls a function by: one address of all arguments, lengths that are checked, and a description.

    The description has a line for the result and one for each leaf: its name, its kind as numpy names it, and its shape.
    """
    name, fields = function.name, function.parameters
    every = [leaf for key, part in fields.items() for leaf in leaves(program, key, f"a->{key}", part)]
    result = {INT: "q", BOOL: "?", FLOAT: "d", NOTHING: "-"}[function.returns]
    takes = [result, *(f"{leaf.name} {KINDS.get(leaf.field.type, 'fn')} {leaf.field.shape}".rstrip() for leaf in every)]
    arguments = ", ".join(f"{'&' if part.type in program.records else ''}a->{key}" for key, part in fields.items())
    answer = {"d": "*(double*)result = ", "-": ""}.get(result, "*(i64*)result = ")
    lines = [
        f"typedef struct {{ {members(fields)} }} {name}_arguments;",
        f'EXPORT const char {name}_takes[] = "{"%n".join(takes)}";'.replace("%n", r"\n"),
        f"EXPORT i64 {name}_entry(const {name}_arguments* a, void* result) {{",
        *(f"    if ({wrong}) return {place};" for place, wrong in checks(function, every)),
        f"    {answer}{name}({arguments});",
        "    return 0;",
        "}",
    ]
    return "\n".join(lines)


def checks(function: Function, every: Sequence[Leaf]) -> Iterator[tuple[int, str]]:
    """Yield the number of each leaf that may be wrong, from 1, and the condition of that.

    A shape is a formula of names and whole numbers, or several with ``or`` in between; ``> 0`` behind it means that the row
    must not be empty. What is said of the length of a row is said of an int itself::

        offsets: Annotated[Ints, "ranks + 1"]       the first row of a name, or a name plus a number, says how many there are
        limit: Annotated[Floats, "ranks"]           as many
        link: Annotated[Ints, "ops or 0"]           may be empty: ``link`` is then its length, for shapes of other rows,
                                                    and other rows of the name are as long
        several: Annotated[Ints, "1"]               one item, which ``several`` is; an int is its own name, too
        due: Annotated[Floats, "classes * several"]
        turn: Annotated[Ints, "ops // slices"]      divided without a rest, or else nothing is as long
        slices: Annotated[int, "> 0"]
    """
    named: dict[str, str] = {}
    first: dict[str, str] = {}
    for leaf in every:
        name, shape = leaf.name.split(".")[-1], leaf.field.shape
        if leaf.field.type == INT or " or " in shape:
            named.setdefault(name, leaf.size)
        elif leaf.field.type == "Ints" and shape == "1":
            named.setdefault(name, f"{leaf.text}.data[0]")
        elif counted := re.fullmatch(r"([a-z]\w*)(?: \+ (\d+))?(?: > \d+)?", shape):
            first.setdefault(counted[1], f"({leaf.size} - {counted[2]})" if counted[2] else leaf.size)
    known = first | named
    # Rows of one item come first, as others may depend on the item.
    for place, leaf in sorted(enumerate(every, 1), key=lambda numbered: numbered[1].field.shape != "1"):
        formulas, _, least = leaf.field.shape.partition("> ")
        if unknown := sorted(set(re.findall(r"[a-z]\w*", formulas)) - {*known, "or"}):
            message = f"no argument says how many {', '.join(unknown)} there are, of which {leaf.name} has {formulas}"
            raise KernelError(function.module.path, function.node.lineno, message)
        wrong = []
        if formulas:
            divided = re.sub(r"(\w+) // (\w+)", r"parts(\1, \2)", formulas.strip())
            texts = [re.sub(r"\w+", lambda name: known.get(name[0], name[0]), text) for text in divided.split(" or ")]
            wrong.append(" && ".join(f"{leaf.size} != {text}" for text in texts))
        if " or " in formulas:
            wrong.append(f"{leaf.size} != {known[leaf.name.split('.')[-1]]}")
        if least:
            wrong.append(f"{leaf.size} <= {least}")
        # What says how many there are is compared with itself.
        wrong = [condition for condition in wrong if condition != f"{leaf.size} != {leaf.size}"]
        if wrong:
            yield place, " || ".join(f"({condition})" for condition in wrong)


def write(source: Path) -> str:
    """Return the C file of all kernels in a folder of source: entries are the functions that a ``Kernel`` is made of.

    Raises KernelError for a kernel that cannot be compiled.
    """
    program = Program(source)
    for path in sorted(source.rglob("*_kernel.py")):
        module = program.read(".".join(path.relative_to(source).with_suffix("").parts), path)
        for function in module.functions.values():
            program.require(function)
    entries = []
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"\bKernel\((\w+)\)", text):
            module = program.read(".".join(path.relative_to(source).with_suffix("").parts), path)
            match program.named(module, name):
                case _, Function() as function if function in program.order and function not in entries:
                    entries.append(function)
    text = program.text(entry(program, function) for function in entries)
    return f'{text}EXPORT const char pipeplan_digest[] = "{sha256(text.encode()).hexdigest()}";\n'


def write_functions(functions: Mapping[str, tuple[str, Path, str]], source: Path) -> str:
    """Return a C file that exports functions of other files, by module, file and name, under names of their own.

    They may use what lies beside their files or in the folder ``source``. Raises KernelError for what cannot be compiled.
    """
    program = Program(source, *{path.parents[module.count(".")] for module, path, _ in functions.values()})
    exported = []
    for name, (home, path, original) in functions.items():
        module = program.read(home, path)
        if original not in module.functions:
            raise KernelError(path, 1, f"{original} is no function of the file: define it there")
        function = program.require(module.functions[original])
        call = f"{function.name}({', '.join(f'{key}_' for key in function.parameters)});"
        returned = "" if function.returns == NOTHING else "return "
        exported.append(f"EXPORT {signature(program, function, name)} {{ {returned}{call} }}")
    return program.text(exported)
