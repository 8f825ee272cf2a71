"""Statements of recipes, followed within limits. Nothing is imported or executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from pipeplan.extensions.review.keys import setting_of
from pipeplan.extensions.review.readers.recipe_expressions import (
    MOST_ROUNDS,
    Expressions,
    RecipeFunction,
    RecipeScope,
    truth,
)
from pipeplan.extensions.review.readers.recipe_files import RecipeModule
from pipeplan.extensions.review.readers.recipe_values import Made, Stated
from pipeplan.extensions.review.settings import UNKNOWN

_DEEPEST = 12
"""Maximum depth of calls of functions that are read."""


class _Returned(Exception):
    """Raised where a function returns."""


class _Raised(Exception):
    """Raised where a recipe raises."""


class RecipeReader(Expressions):
    """Follows a module and the functions that it calls, in its own and in other files."""

    def __init__(self, module: RecipeModule) -> None:
        super().__init__(module)
        self._doubt = False

    def run(self, body: Sequence[ast.stmt], scope: RecipeScope) -> None:
        """Follow the statements of a function to its end."""
        try:
            self._follow(body, scope)
        except _Returned:
            pass
        except _Raised:
            if self.depth:
                raise

    def _follow(self, body: Sequence[ast.stmt], scope: RecipeScope) -> None:
        for statement in body:
            self.spend()
            if scope.unsure and self.depth:
                self._undecided([statement], scope)
            else:
                self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: RecipeScope) -> None:  # noqa: PLR0912 - a row per statement
        match node:
            case ast.Assign() | ast.AnnAssign() if node.value is not None:
                stated = self.stated(node.value, scope)
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self.assign(target, stated, scope)
            case ast.AugAssign():
                changed = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
                raw = self.value(changed, scope)
                self.assign(node.target, Stated(raw, self.place(node.value, scope)), scope)
            case ast.Expr():
                made = self.value(node.value, scope)
                scope.made += [made] if isinstance(made, Made) and made.fields else []
            case ast.Assert(test=ast.Compare(left=ast.Attribute() as left, ops=[ast.Eq()], comparators=[right])):
                # What a recipe asserts of its model is so: ``assert cfg.model.num_layers == 80``.
                if setting_of(left.attr) is not None:
                    self.assign(left, self.stated(right, scope), scope)
            case ast.Return():
                if not scope.unsure:
                    scope.result = Stated(None) if node.value is None else self.stated(node.value, scope)
                raise _Returned
            case ast.Raise():
                raise _Raised
            case ast.With() | ast.AsyncWith():
                self._follow(node.body, scope)
            case ast.If():
                decides = truth(self.value(node.test, scope))
                if decides is UNKNOWN:
                    self._undecided([*node.body, *node.orelse], scope)
                else:
                    self._follow(node.body if decides else node.orelse, scope)
            case ast.For():
                self._loop(node, scope)
            case ast.Try():
                try:
                    self._follow(node.body, scope)
                except _Raised:
                    self._follow(node.handlers[0].body if node.handlers else (), scope)
                self._follow(node.finalbody, scope)
            case ast.FunctionDef() | ast.ClassDef():
                scope.names[node.name] = Stated(RecipeFunction(node, scope.module, scope.names))
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    scope.names[alias.asname or alias.name] = self._imported(scope.module, node, alias)
            case ast.While():
                self._undecided([node], scope)

    def _loop(self, node: ast.For, scope: RecipeScope) -> None:
        values = self.value(node.iter, scope)
        if not isinstance(values, list | tuple) or len(values) > MOST_ROUNDS:
            self._undecided([node], scope)
            return
        for value in values:
            self.assign(node.target, Stated(value, self.place(node.iter, scope)), scope)
            self._follow(node.body, scope)

    def _undecided(self, body: Sequence[ast.stmt], scope: RecipeScope) -> None:
        """Mark what statements may set as unknown, and what follows if they may return."""
        for inner in (inner for statement in body for inner in ast.walk(statement)):
            match inner:
                case ast.Assign():
                    for target in inner.targets:
                        self.assign(target, Stated(UNKNOWN, self.place(inner.value, scope)), scope)
                case ast.AnnAssign() | ast.AugAssign() | ast.For():
                    self.assign(inner.target, Stated(UNKNOWN, self.place(inner.target, scope)), scope)
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "insert")):
                    scope.names[name] = Stated(UNKNOWN)
                case ast.Call():
                    self._perhaps_called(inner, scope)
                case ast.Return():
                    scope.unsure = True

    def _perhaps_called(self, node: ast.Call, scope: RecipeScope) -> None:
        """Mark as unknown what a function may change of the configurations that it gets, if it is called."""
        arguments = [self.value(one, scope) for one in (*node.args, *(keyword.value for keyword in node.keywords))]
        if not any(isinstance(one, Made) and not one.is_dict for one in arguments):
            return
        if isinstance(self.value(node.func, scope), RecipeFunction):
            doubt, self._doubt = self._doubt, True
            self.value(node, scope)
            self._doubt = doubt
        else:
            self.may_change(node, arguments, scope)

    def assign(self, target: ast.expr, stated: Stated, scope: RecipeScope) -> None:
        """Set the names, fields or items of a target."""
        match target:
            case ast.Name():
                scope.names[target.id] = stated
            case ast.Tuple() | ast.List():
                raw = stated.raw
                parts = raw if isinstance(raw, list | tuple) and len(raw) == len(target.elts) else None
                for place, part in enumerate(target.elts):
                    first = raw if isinstance(raw, Made) and not place else UNKNOWN
                    self.assign(part, stated._replace(raw=first if parts is None else parts[place]), scope)
            case ast.Attribute() | ast.Subscript():
                key = target.attr if isinstance(target, ast.Attribute) else self.value(target.slice, scope)
                owner = self.owner(target.value, scope)
                if owner is not None and key is not UNKNOWN:
                    owner.set(key, stated, self.spend())

    def followed(self, function: RecipeFunction, passed: Made, node: ast.Call, scope: RecipeScope) -> Any:
        """Return what a function of a file returns, or what a class of it makes."""
        if self.depth >= _DEEPEST:
            return UNKNOWN
        inner = RecipeScope(function.module, dict(function.around), unsure=self._doubt)
        changes = any(isinstance(one.raw, Made) and not one.raw.is_dict for one in passed.fields.values())
        inner.site = scope.site or (self.place(node, scope, within=False) if changes else None)
        given = {**function.bound, **passed.fields}
        if isinstance(function.node, ast.ClassDef):
            return self.instance(function.node, given, passed)
        parameters = dict(parameters_of(function.node))
        for place, (name, default) in enumerate(parameters.items()):
            absent = Stated(UNKNOWN) if passed.open or default is None else self.stated(default, inner)
            inner.names[name] = given.pop(name, given.pop(place, absent))
        if function.node.args.kwarg is not None:
            rest = {key: one for key, one in given.items() if isinstance(key, str)}
            inner.names[function.node.args.kwarg.arg] = Stated(Made("dict", fields=rest, open=passed.open))
        self.depth += 1
        try:
            self.run(function.node.body, inner)
        finally:
            self.depth -= 1
        return UNKNOWN if inner.unsure else inner.result.raw


def parameters_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the parameters of a function with their defaults."""
    named = [*node.args.posonlyargs, *node.args.args]
    without = len(named) - len(node.args.defaults)
    yield from ((argument.arg, None) for argument in named[:without])
    yield from ((argument.arg, default) for argument, default in zip(named[without:], node.args.defaults, strict=True))
    yield from (
        (argument.arg, default) for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    )
