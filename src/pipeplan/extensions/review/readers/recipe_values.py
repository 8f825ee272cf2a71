"""Values of expressions in recipes, computed on the syntax tree within limits; nothing is executed by Python."""

from __future__ import annotations

import ast
import operator as operators
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeplan.extensions.review.settings import UNKNOWN

_LARGEST_LIST = 100_000
"""Maximum number of values of a list, and of letters of a text, that an expression makes."""

_LARGEST_NUMBER = 10**15
"""Largest absolute value of a number with which a recipe is computed."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operators.add,
    ast.Sub: operators.sub,
    ast.Mult: operators.mul,
    ast.FloorDiv: operators.floordiv,
    ast.Div: operators.truediv,
    ast.Mod: operators.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operators.eq,
    ast.NotEq: operators.ne,
    ast.Lt: operators.lt,
    ast.LtE: operators.le,
    ast.Gt: operators.gt,
    ast.GtE: operators.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
    ast.Is: lambda left, right: left is right if right is None else left == right,
    ast.IsNot: lambda left, right: left is not right if right is None else left != right,
}
_BUILTINS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (len, int, float, bool, list, tuple, dict, min, max, sum, divmod, abs, str)
}
_METHODS: dict[type, frozenset[str]] = {
    dict: frozenset({"get", "copy", "keys", "values", "items", "update", "setdefault"}),
    list: frozenset({"append", "extend", "insert", "copy", "index", "count"}),
    str: frozenset({"lower", "upper", "startswith", "endswith", "strip"}),
}


@dataclass(frozen=True, slots=True)
class LocalFunction:
    """Function of the file, with the arguments that ``partial`` has bound."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    bound: tuple[tuple[str, Any], ...] = ()


@dataclass
class FunctionScope:
    """Names of a function while it is read.

    Attributes
    ----------
    names
        Values by name.
    aliases
        Configurations that were passed, by the name of the parameter: ``model_cfg`` is ``cfg.model``.
    attributes
        Values by dotted name, of all functions together.
    """

    names: dict[str, Any] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)

    def dotted(self, node: ast.expr) -> str:
        """Return the name of a target: ``cfg.model.x``, and ``cfg["model"]["x"]`` alike; empty for all others."""
        parts: list[str] = []
        while not isinstance(node, ast.Name):
            if isinstance(node, ast.Attribute):
                parts.append(node.attr)
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                parts.append(str(node.slice.value))
            else:
                return ""
            node = node.value
        return ".".join([self.aliases.get(node.id, node.id), *reversed(parts)])


class Expressions:
    """Evaluates expressions; the calls of the file's functions are left to the reader of recipes."""

    def call(self, function: LocalFunction, node: ast.Call, scope: FunctionScope) -> Any:
        """Return what a function of the file returns."""
        raise NotImplementedError

    def spend(self) -> None:
        """Count a step."""
        raise NotImplementedError

    def value(self, node: ast.expr, scope: FunctionScope) -> Any:
        """Return the value of an expression; UNKNOWN if only a run would know it."""
        self.spend()
        try:
            return self._evaluated(node, scope)
        except (TypeError, ValueError, ArithmeticError, LookupError, MemoryError, AttributeError):
            return UNKNOWN

    def _evaluated(self, node: ast.expr, scope: FunctionScope) -> Any:
        match node:
            case ast.Constant():
                result = UNKNOWN if isinstance(node.value, bytes | complex) else node.value
            case ast.Name():
                result = scope.names.get(node.id, UNKNOWN)
            case ast.List() | ast.Tuple():
                result = self._sequence(node, scope)
            case ast.Dict():
                result = self._mapping(node, scope)
            case ast.BinOp():
                result = combined(node.op, self.value(node.left, scope), self.value(node.right, scope))
            case ast.UnaryOp() | ast.BoolOp() | ast.Compare() | ast.IfExp():
                result = self._logical(node, scope)
            case ast.Subscript():
                result = self._part(node, scope)
            case ast.Attribute():
                result = self._attribute(node, scope)
            case ast.Call():
                result = self._called(node, scope)
            case _:
                result = UNKNOWN
        return result

    def _logical(self, node: ast.UnaryOp | ast.BoolOp | ast.Compare | ast.IfExp, scope: FunctionScope) -> Any:
        match node:
            case ast.UnaryOp(op=ast.USub()):
                return combined(ast.Mult(), -1, self.value(node.operand, scope))
            case ast.UnaryOp(op=ast.Not()):
                return negated(truth(self.value(node.operand, scope)))
            case ast.BoolOp():
                return self._joined(node, scope)
            case ast.Compare():
                return self._compared(node, scope)
            case ast.IfExp():
                return self._chosen(node, scope)
        return UNKNOWN

    def _sequence(self, node: ast.List | ast.Tuple, scope: FunctionScope) -> Any:
        values = [self.value(part, scope) for part in node.elts]
        if any(isinstance(part, ast.Starred) for part in node.elts) or UNKNOWN in values:
            return UNKNOWN
        return values if isinstance(node, ast.List) else tuple(values)

    def _mapping(self, node: ast.Dict, scope: FunctionScope) -> Any:
        """Return a dictionary; what is unpacked into it and unknown is left out."""
        made: dict[Any, Any] = {}
        for key, inner in zip(node.keys, node.values, strict=True):
            value = self.value(inner, scope)
            if key is None:
                made |= value if isinstance(value, dict) else {}
            else:
                made[self.value(key, scope)] = value
        return made

    def _joined(self, node: ast.BoolOp, scope: FunctionScope) -> Any:
        value: Any = UNKNOWN
        for part in node.values:
            value = self.value(part, scope)
            decides = truth(value)
            if decides is UNKNOWN or decides == isinstance(node.op, ast.Or):
                return value
        return value

    def _compared(self, node: ast.Compare, scope: FunctionScope) -> Any:
        left = self.value(node.left, scope)
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator, scope)
            if left is UNKNOWN or right is UNKNOWN:
                return UNKNOWN
            if not _COMPARISONS[type(operator)](left, right):
                return False
            left = right
        return True

    def _chosen(self, node: ast.IfExp, scope: FunctionScope) -> Any:
        decides = truth(self.value(node.test, scope))
        return UNKNOWN if decides is UNKNOWN else self.value(node.body if decides else node.orelse, scope)

    def _part(self, node: ast.Subscript, scope: FunctionScope) -> Any:
        whole = self.value(node.value, scope)
        if isinstance(whole, dict | list | tuple | str) and not isinstance(node.slice, ast.Slice):
            return whole[self.value(node.slice, scope)]
        return scope.attributes.get(scope.dotted(node), UNKNOWN)

    def _attribute(self, node: ast.Attribute, scope: FunctionScope) -> Any:
        name = scope.dotted(node)
        if name in scope.attributes:
            return scope.attributes[name]
        if name.startswith("torch."):
            # torch.bfloat16 is named by its last part.
            return name.removeprefix("torch.")
        # A provider has no virtual stages before a recipe sets them.
        return None if node.attr == "virtual_pipeline_model_parallel_size" else UNKNOWN

    def _called(self, node: ast.Call, scope: FunctionScope) -> Any:
        function = self.value(node.func, scope) if isinstance(node.func, ast.Name) else UNKNOWN
        if isinstance(function, LocalFunction):
            return self.call(function, node, scope)
        arguments = [self.value(argument, scope) for argument in node.args]
        keywords = {keyword.arg: self.value(keyword.value, scope) for keyword in node.keywords}
        if isinstance(node.func, ast.Attribute):
            return self._method(node.func, arguments, scope) if not keywords else UNKNOWN
        if not isinstance(node.func, ast.Name) or function is not UNKNOWN:
            return UNKNOWN
        return self._builtin(node, node.func.id, arguments, keywords, scope)

    def _builtin(
        self, node: ast.Call, name: str, arguments: list[Any], keywords: Mapping[str | None, Any], scope: FunctionScope
    ) -> Any:
        if name == "partial" and len(arguments) == 1 and isinstance(arguments[0], LocalFunction):
            bound = tuple((str(key), value) for key, value in keywords.items())
            return LocalFunction(arguments[0].node, arguments[0].bound + bound)
        if name == "get_mixed_precision_config" and len(arguments) == 1:
            # Bridge's recipe of mixed precision is named by its argument.
            return arguments[0]
        if name == "getattr" and len(arguments) in (2, 3) and isinstance(arguments[1], str):
            dotted = f"{scope.dotted(node.args[0])}.{arguments[1]}"
            return scope.attributes.get(dotted, arguments[2] if len(arguments) > 2 else UNKNOWN)
        if UNKNOWN in arguments or keywords:
            return UNKNOWN
        if name == "range" and len(range(*arguments)) <= _LARGEST_LIST:
            return list(range(*arguments))
        return _BUILTINS[name](*arguments) if name in _BUILTINS else UNKNOWN

    def _method(self, node: ast.Attribute, arguments: list[Any], scope: FunctionScope) -> Any:
        owner = self.value(node.value, scope)
        if node.attr not in _METHODS.get(type(owner), ()) or UNKNOWN in arguments:
            return UNKNOWN
        if len(owner) + sum(len(argument) for argument in arguments if hasattr(argument, "__len__")) > _LARGEST_LIST:
            return UNKNOWN
        return getattr(owner, node.attr)(*arguments)


def truth(value: Any) -> Any:
    """Return whether a value counts as true; UNKNOWN for an unknown one."""
    return UNKNOWN if value is UNKNOWN else bool(value)


def negated(value: Any) -> Any:
    """Return the opposite of a truth value."""
    return UNKNOWN if value is UNKNOWN else not value


def combined(operator: ast.operator, left: Any, right: Any) -> Any:
    """Return the result of an operator on numbers, lists or texts; UNKNOWN for others, and for what is too large."""
    if isinstance(operator, ast.BitOr) and isinstance(left, Mapping) and isinstance(right, Mapping):
        return {**left, **right}
    if isinstance(operator, ast.Mult) and isinstance(left, int) and isinstance(right, list | str):
        left, right = right, left
    many = isinstance(left, list | str | tuple)
    if many and isinstance(operator, ast.Add) and type(left) is type(right):
        return left + right if len(left) + len(right) <= _LARGEST_LIST else UNKNOWN
    if many and isinstance(operator, ast.Mult) and isinstance(right, int):
        return left * right if len(left) * max(right, 0) <= _LARGEST_LIST else UNKNOWN
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if not numbers or type(operator) not in _OPERATORS or max(abs(left), abs(right)) > _LARGEST_NUMBER:
        return UNKNOWN
    return _OPERATORS[type(operator)](left, right)
