"""Translate the statements and expressions of kernels into C.

A function is translated repeatedly until the types of its variables no longer change. Where C could give another result
than Python, the translation follows Python or is refused with file, line and remedy::

    a // b, a % b             rounded down, as in Python; C rounds towards 0
    for x in range(n)         the limit is read once, as in Python
    f(a) + g(b)               refused if one of them writes: C leaves open which runs first
    -1 as an index            refused: C counts only from the beginning
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, NoReturn

from pipeplan.foundation.compiling.program import (
    BOOL,
    FLOAT,
    INT,
    NOTHING,
    NUMBERS,
    ROWS,
    SCALARS,
    Function,
    KernelError,
    Program,
    signature,
)

BUILT_IN = ("abs", "bool", "float", "int", "len", "max", "min", "range")
"""Functions of Python that kernels may call."""

OPERATORS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


class Term(NamedTuple):
    """An expression in C and its type; the type is None while that of a variable in it is unknown."""

    text: str
    type: str | None


def translated(program: Program, function: Function, callers: tuple[Function, ...] = ()) -> Function:
    """Translate a function after those that it calls. Raises KernelError for what kernels may not use."""
    if function in callers:
        raise KernelError(function.module.path, function.node.lineno, "a function that calls itself: write a loop")
    if function not in program.order:
        arguments = function.node.args
        line = function.node.lineno
        if ast.dump(arguments) != ast.dump(ast.arguments([], arguments.args, None, [], [], None, [])):
            raise KernelError(function.module.path, line, "write plain parameters without defaults")
        if any(ast.unparse(decorator) != "inlined" for decorator in function.node.decorator_list):
            raise KernelError(function.module.path, line, "only the decorator inlined is supported")
        for item in arguments.args:
            function.parameters[item.arg] = program.field_of(function.module, item.annotation, line)
        function.returns = program.field_of(function.module, function.node.returns, line).type
        Translation.of(program, function, (*callers, function))
        program.order.append(function)
    return function


class Translation:
    """One pass over a function.

    ``lines`` are its statements in C. ``rows`` has the rows within records of parameters, by the address of their items: the
    type of an item, and the variable that holds the address.
    """

    def __init__(self, program: Program, function: Function, callers: tuple[Function, ...]) -> None:
        self.program, self.function, self.callers = program, function, callers
        self.assigned = {node.id for node in ast.walk(function.node) if _is_stored(node) and isinstance(node, ast.Name)}
        self.lines: list[str] = []
        self.rows: dict[str, tuple[str, str]] = {}
        self.temporaries = 0

    @classmethod
    def of(cls, program: Program, function: Function, callers: tuple[Function, ...]) -> None:
        """Translate a function: set its text in C and the types of its variables."""
        function.writes = any(_is_stored(node) and isinstance(node, ast.Subscript) for node in ast.walk(function.node))
        before = None
        while before != function.variables:
            before = dict(function.variables)
            translation = cls(program, function, callers)
            translation.block(function.node.body, 1)
        if function.returns != NOTHING and not _ends(function.node.body):
            translation.fail(function.node, f"{function.node.name} may end without a result: write a return at its end")
        for name in translation.assigned - function.variables.keys() - function.parameters.keys():
            translation.fail(function.node, f"{name} has no type: assign a number or a row to it")
        types = {name: program.c_type(type_) for name, type_ in function.variables.items()}
        variables = [f"    {type_} {name}_;" for name, type_ in types.items()]
        # No function writes into a record, so the address of a row within it is read once, at the beginning.
        rows = [f"    {stored}* const {name} = {text};" for text, (stored, name) in translation.rows.items()]
        # The only decorator is ``inlined``.
        static = "static INLINED" if function.node.decorator_list else "static"
        head = f"{static} {signature(program, function, function.name)} {{"
        function.text = "\n".join([head, *variables, *rows, *translation.lines, "}", ""])

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        """Raise an error at the line of a node."""
        raise KernelError(self.function.module.path, getattr(node, "lineno", self.function.node.lineno), message)

    # Statements

    def put(self, depth: int, text: str) -> None:
        """Add a line of C."""
        self.lines.append("    " * depth + text)

    def block(self, statements: Sequence[ast.stmt], depth: int) -> None:
        """Translate statements."""
        for statement in statements:
            self.statement(statement, depth)

    def statement(self, node: ast.stmt, depth: int) -> None:
        """Translate a statement."""
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
                self.assign([target], ast.copy_location(ast.BinOp(target, operator, value), node), depth)
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
            case ast.Return(value=None) if self.function.returns == NOTHING:
                self.put(depth, "return;")
            case ast.Return(value=ast.Tuple(elts=parts)) if self.function.returns in self.program.tuples:
                types = self.program.parts(self.function.returns)
                texts = ", ".join(self.passed_as(node, types, parts, "its annotation"))
                self.put(depth, f"return ({self.program.c_type(self.function.returns)}){{{texts}}};")
            case ast.Return(value=ast.expr() as value) if self.function.returns != NOTHING:
                (text,) = self.passed_as(node, [self.function.returns], [value], "its annotation")
                self.put(depth, f"return {text};")
            case ast.Break():
                self.put(depth, "break;")
            case ast.Continue():
                self.put(depth, "continue;")
            case _:
                line = ast.unparse(node).splitlines()[0]
                self.fail(node, f"'{line}' is not a supported statement: see docs/explanation/kernels.md")

    def assign(self, targets: list[ast.expr], value: ast.expr, depth: int) -> None:
        """Assign a value or the parts of a tuple to targets, all of them computed before the first is assigned."""
        for target in filter(self.writes, targets):
            self.fail(target, f"a call that writes in '{ast.unparse(target)}': assign its result to a variable first")
        match targets, value:
            case [ast.Tuple(elts=targets)], ast.Tuple(elts=values):
                parts = [self.temporary(self.passed(part), depth) for part in values]
            case [ast.Tuple(elts=targets)], _:
                term = self.temporary(self.expression(value), depth)
                if term.type and term.type not in self.program.tuples:
                    self.fail(value, f"'{ast.unparse(value)}' is {term.type}, not a tuple")
                types = self.program.parts(term.type) if term.type else [None] * len(targets)
                parts = [Term(f"{term.text}.part{place}", type_) for place, type_ in enumerate(types)]
            case [target], _:
                parts = [self.passed(value)]
                if self.writes(value) and isinstance(target, ast.Subscript) and self.reads(target.slice):
                    parts = [self.temporary(parts[0], depth)]
            case _:
                parts = [self.temporary(self.passed(value), depth)] * len(targets)
        if len(targets) != len(parts):
            self.fail(value, f"{len(parts)} values for {len(targets)} names")
        for target, part in zip(targets, parts, strict=True):
            self.put(depth, f"{self.target(target, part)} = {part.text};")

    def temporary(self, term: Term, depth: int) -> Term:
        """Store a value in a new variable of the current block."""
        self.temporaries += 1
        name = f"t{self.temporaries}"
        self.put(depth, f"{self.program.c_type(term.type or INT)} {name} = {term.text};")
        return Term(name, term.type)

    def target(self, node: ast.expr, value: Term) -> str:
        """Return the target of an assignment in C. The type of a variable becomes wide enough for the value."""
        if value.type == NOTHING:
            self.fail(node, f"what '{ast.unparse(node)}' gets has no value: its function returns None")
        if isinstance(node, ast.Subscript):
            item = self.item(node)
            if item.type and self.joined(node, item.type, value.type) != item.type:
                self.fail(node, f"'{ast.unparse(node)}' is {item.type} and gets {value.type}: use a row of that type")
            return item.text
        if isinstance(node, ast.Name) and value.type is not None:
            parameter = self.function.parameters.get(node.id)
            before = parameter.type if parameter else self.function.variables.get(node.id)
            type_ = self.joined(node, before, value.type)
            if parameter is None:
                self.function.variables[node.id] = type_
            elif type_ != parameter.type:
                self.fail(node, f"parameter {node.id} is {parameter.type} and gets {value.type}: use another name")
        elif not isinstance(node, ast.Name):
            self.fail(node, f"'{ast.unparse(node)}' cannot be assigned to: write into a row or a variable")
        return self.expression(node).text

    def loop(self, target: ast.Name, iterated: ast.expr, body: list[ast.stmt], depth: int) -> None:
        """Translate a loop over a range or over the items of a row."""
        self.temporaries += 1
        count = f"k{self.temporaries}"
        if isinstance(iterated, ast.Call) and ast.unparse(iterated.func) == "range":
            limits = self.passed_as(iterated, [INT] * len(iterated.args), iterated.args, "range")
            start, stop, step = ["0", *limits, "1"] if len(limits) == 1 else [*limits, "1"][:3]
            head = f"i64 {count} = {start}, {count}_stop = {stop}, {count}_step = {step}"
            test = f"{count}_step < 0 ? {count} > {count}_stop : {count} < {count}_stop"
            step, value = f"{count} += {count}_step", Term(count, INT)
        else:
            # As in Python, the loop keeps its row when the body assigns another one to the name.
            row = self.temporary(self.expression(iterated), depth)
            head, test, step = f"i64 {count} = 0", f"{count} < {row.text}.length", f"{count}++"
            item = ast.copy_location(ast.Subscript(iterated, ast.Constant(0)), iterated)
            value = self.expression(item)._replace(text=f"{row.text}.data[{count}]")
        self.put(depth, f"for ({head}; {test}; {step}) {{")
        self.put(depth + 1, f"{self.target(target, value)} = {value.text};")
        self.block(body, depth + 1)
        self.put(depth, "}")

    # Expressions

    def joined(self, node: ast.AST, first: str | None, second: str | None) -> str:
        """Return the type of a value that may have either type: the wider one of two numbers."""
        if first in NUMBERS and second in NUMBERS:
            return max(first, second, key=NUMBERS.index)
        if first and second and first != second:
            self.fail(node, f"'{ast.unparse(node)}' is {first} and {second}: use two names")
        return first or second or ""

    def in_order(self, node: ast.AST, parts: Sequence[ast.expr]) -> list[Term]:
        """Return the parts of an expression, which C may compute in any order. Raises KernelError if the order matters."""
        writing = list(map(self.writes, parts))
        if any(writing) and sum(map(self.reads, parts)) > 1:
            part, whole = ast.unparse(parts[writing.index(True)]), ast.unparse(node)
            self.fail(node, f"'{part}' writes, and '{whole}' reads more: assign its first part to a variable first")
        return [self.passed(part) for part in parts]

    def passed_as(self, node: ast.AST, types: Sequence[str], parts: Sequence[ast.expr], taker: str) -> list[str]:
        """Return expressions in C. Raises KernelError unless they have these types, or narrower ones."""
        terms = self.in_order(node, parts)
        if len(terms) != len(types):
            self.fail(node, f"{taker} takes {len(types)} values, not {len(terms)}")
        for part, term, type_ in zip(parts, terms, types, strict=True):
            narrower = NUMBERS[: NUMBERS.index(type_)] if type_ in NUMBERS else ()
            if term.type not in (None, type_, *narrower):
                self.fail(part, f"'{ast.unparse(part)}' is {term.type}: {taker} takes {type_}")
        return [term.text for term in terms]

    def reads(self, node: ast.expr) -> bool:
        """Return True if an expression reads rows, itself or by a call, so that a write can change its value."""
        return any(
            isinstance(part, ast.Subscript) or (isinstance(part, ast.Call) and ast.unparse(part.func) not in BUILT_IN)
            for part in ast.walk(node)
        )

    def writes(self, node: ast.expr) -> bool:
        """Return True if an expression calls a function that writes into rows."""
        calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
        return any(
            isinstance(call.func, ast.Subscript) or getattr(self.called(call), "writes", False) for call in calls
        )

    def called(self, node: ast.Call) -> Function | None:
        """Return the translated function of a call; None for a function of Python or in a row."""
        match None if self.is_local(node.func) else self.program.named(self.function.module, ast.unparse(node.func)):
            case _, Function() as function:
                called = translated(self.program, function, self.callers)
                self.function.writes |= called.writes
                return called
        return None

    def condition(self, node: ast.expr) -> str:
        """Return a condition in C. Raises KernelError unless it is a bool: the truth of a row has no meaning in C."""
        term = self.expression(node)
        if term.type not in (BOOL, None):
            self.fail(node, f"'{ast.unparse(node)}' is not a condition: compare it, for example with 0")
        return term.text

    def passed(self, node: ast.expr) -> Term:
        """Return an expression as it is assigned or passed: a record within a record by its address."""
        term = self.expression(node)
        within = isinstance(node, ast.Attribute) and term.type in self.program.records
        return term._replace(text=f"&{term.text}") if within else term

    def expression(self, node: ast.expr) -> Term:
        """Translate an expression, in parentheses wherever the precedence of C could differ."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return self.number(node, value)
            case ast.Name(id=name) if self.is_local(node):
                parameter = self.function.parameters.get(name)
                return Term(f"{name}_", parameter.type if parameter else self.function.variables.get(name))
            case ast.Name() | ast.Attribute() if (constant := self.constant(node)) is not None:
                return constant
            case ast.Name(id=name):
                self.fail(node, f"{name} is neither a variable nor a constant: write its number where it is defined")
            case ast.Attribute(value=value, attr=name):
                record = self.expression(value)
                fields = self.program.records.get(record.type or "", {})
                if record.type is None or name in fields:
                    dot = "." if isinstance(value, ast.Attribute) else "->"
                    return Term(f"{record.text}{dot}{name}_", fields[name].type if fields else None)
            case ast.Subscript():
                return self.item(node, reads=True)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Term(f"!({self.condition(operand)})", BOOL)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                term = self.expression(operand)
                return Term(f"-({term.text})", self.joined(node, INT, term.type))
            case ast.BoolOp(op=operator, values=values):
                # Conditions that can neither fail nor write are all computed, which saves a jump for each.
                risky = ast.Call | ast.Div | ast.FloorDiv | ast.Mod | ast.Subscript
                stops = any(isinstance(part, risky) for value in values[1:] for part in ast.walk(value))
                word = ("&" if isinstance(operator, ast.And) else "|") * (1 + stops)
                return Term(f"({f' {word} '.join(map(self.condition, values))})", BOOL)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                first, second = self.passed(body), self.passed(orelse)
                text = f"({self.condition(test)} ? {first.text} : {second.text})"
                return Term(text, self.joined(node, first.type, second.type))
            case ast.Compare(left=left, ops=operators, comparators=others) if {*map(type, operators)} <= {*OPERATORS}:
                if len(others) > 1 and any(map(self.writes, others)):
                    whole = ast.unparse(node)
                    self.fail(node, f"a call that writes in '{whole}': assign its result to a variable first")
                terms = self.in_order(node, [left, *others])
                for first, second in pairwise(terms):
                    self.joined(node, INT, self.joined(node, first.type, second.type))
                pairs = zip(pairwise(terms), operators, strict=True)
                tests = [f"{first.text} {OPERATORS[type(item)]} {second.text}" for (first, second), item in pairs]
                return Term(f"({' && '.join(tests)})", BOOL)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
                first, second = self.in_order(node, [left, right])
                return self.arithmetic(node, first, OPERATORS[type(operator)], second)
            case ast.Call(func=ast.Name(id=name) as called) if name in BUILT_IN and (
                self.is_local(called) or self.program.named(self.function.module, name)
            ):
                self.fail(node, f"{name} hides Python's function: use another name")
            case ast.Call(func=ast.Name(id="len"), args=[row]):
                term = self.expression(row)
                if term.type is None or term.type in ROWS or term.type.endswith("[]"):
                    return Term(f"{term.text}.length", INT)
            case ast.Call(func=ast.Name(id="int" | "float" | "bool" as name), args=[value]):
                (text,) = self.passed_as(node, [FLOAT], [value], name)
                return Term(f"(({SCALARS[name]}){text})", SCALARS[name])
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=[_, _, *_] as arguments, keywords=[]):
                return self.of_numbers(node, name, arguments)
            case ast.Call(func=ast.Name(id="abs" as name), args=[_] as arguments, keywords=[]):
                return self.of_numbers(node, name, arguments)
            case ast.Call(func=called, args=arguments, keywords=[]) if ast.unparse(called) not in BUILT_IN:
                return self.call(node, arguments)
        self.fail(node, f"'{ast.unparse(node)}' is not supported in kernels: see docs/explanation/kernels.md")

    def item(self, node: ast.Subscript, *, reads: bool = False) -> Term:
        """Return an item of a row, as a target or as a value that is read."""
        row, _ = self.in_order(node, [node.value, node.slice])
        type_ = ROWS[row.type][0] if row.type in ROWS else row.type and row.type.removesuffix("[]")
        (index,) = self.passed_as(node, [INT], [node.slice], "an index")
        if (row.type and type_ == row.type) or index.startswith("-"):
            self.fail(node, f"'{ast.unparse(node)}' is not an item of a row: use an int that counts from its beginning")
        # Without the cast, arithmetic would wrap around at 32 bits.
        wide = "(i64)" if reads and row.type == "Ints32" else ""
        return Term(f"{wide}{self.row(node.value, row)}[{index}]", type_)

    def constant(self, node: ast.Name | ast.Attribute) -> Term | None:
        """Return the value of a constant of a module; None for other names."""
        if self.is_local(node):
            return None
        match self.program.named(self.function.module, ast.unparse(node)):
            case _, ast.Constant(value=bool() | int() | float() as value):
                return self.number(node, value)
            case _, ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return self.number(node, -value)
        return None

    def number(self, node: ast.expr, value: float) -> Term:
        """Return a number in C."""
        if isinstance(value, bool):
            return Term(str(value).lower(), BOOL)
        if not (abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value)):
            self.fail(node, f"{ast.unparse(node)} does not fit into 64 bits")
        return Term(f"{value}LL", INT) if isinstance(value, int) else Term(repr(value), FLOAT)

    def is_local(self, node: ast.expr) -> bool:
        """Return True for a variable or parameter of the function, and for attributes of one."""
        name = _first_name(node)
        return name in self.function.parameters or name in self.assigned

    def arithmetic(self, node: ast.expr, first: Term, operator: str, second: Term) -> Term:
        """Return the result of an arithmetic operator on two numbers."""
        type_ = self.joined(node, FLOAT if operator == "/" else INT, self.joined(node, first.type, second.type))
        if operator in ("//", "%"):
            if type_ != INT:
                self.fail(node, f"'{operator}' of floats in '{ast.unparse(node)}': use it with ints only")
            return Term(f"{'div' if operator == '//' else 'mod'}_i({first.text}, {second.text})", INT)
        divided = "(double)" if operator == "/" else ""
        return Term(f"({divided}{first.text} {operator} {second.text})", type_)

    def of_numbers(self, node: ast.Call, name: str, arguments: list[ast.expr]) -> Term:
        """Return ``min``, ``max`` or ``abs`` of numbers."""
        terms = self.in_order(node, arguments)
        type_, text = BOOL, terms[0].text
        for term in terms:
            if term.type not in (None, *NUMBERS):
                self.fail(node, f"'{ast.unparse(node)}' takes numbers only")
            type_ = self.joined(node, type_, term.type)
        if name == "abs":
            type_ = self.joined(node, INT, type_)
            return Term(f"{'fabs' if type_ == FLOAT else 'llabs'}({text})", type_)
        for term in terms[1:]:
            text = f"{name}_{'d' if type_ == FLOAT else 'i'}({text}, {term.text})"
        return Term(text, type_)

    def call(self, node: ast.Call, arguments: list[ast.expr]) -> Term:
        """Return the call of a kernel function or of an item of a row of functions."""
        function = self.called(node)
        if function is not None:
            name, returns = function.name, function.returns
            takes = [parameter.type for parameter in function.parameters.values()]
        else:
            if isinstance(node.func, ast.Name):
                self.fail(node, f"{node.func.id} is not a kernel function: import it from the file that defines it")
            if isinstance(node.func, ast.Subscript):
                self.in_order(node, [node.func.slice, *arguments])
            name, type_ = self.expression(node.func)
            takes, returns = self.program.callables.get(type_ or "", ([], NOTHING))
            self.function.writes = True
        texts = self.passed_as(node, takes, arguments, ast.unparse(node.func))
        return Term(f"{name}({', '.join(texts)})", returns)

    def row(self, node: ast.expr, row: Term) -> str:
        """Return the address of a row's first item: a variable of ``rows`` if it is in a record that a parameter holds."""
        text, name = f"{row.text}.data", _first_name(node)
        is_fixed = isinstance(node, ast.Attribute) and name in self.function.parameters and name not in self.assigned
        if not is_fixed or row.type not in ROWS:
            return text
        return self.rows.setdefault(text, (ROWS[row.type][1], re.sub(r"->|\.", "_", text)))[1]


def _first_name(node: ast.expr) -> str:
    """Return ``a`` for ``a`` and ``a.b.c``, and an empty text for other expressions."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_stored(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Return True if a block returns on every path."""
    match body[-1]:
        case ast.Return() | ast.While(test=ast.Constant(value=True)):
            return not any(isinstance(node, ast.Break) for node in ast.walk(body[-1]))
        case ast.If(body=first, orelse=[*second]) if second:
            return _ends(first) and _ends(second)
    return False
