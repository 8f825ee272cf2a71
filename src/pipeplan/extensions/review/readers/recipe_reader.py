"""Statements and expressions of recipes, followed within limits. Nothing is imported or executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.keys import setting_of
from pipeplan.extensions.review.readers.recipe_files import RecipeFiles, RecipeModule
from pipeplan.extensions.review.readers.recipe_names import CONSUMERS, is_helper, prepared, settings_changed_by
from pipeplan.extensions.review.readers.recipe_values import (
    External,
    Made,
    Stated,
    builtin,
    cloned,
    combined,
    listed,
    truth,
)
from pipeplan.extensions.review.settings import UNKNOWN
from pipeplan.foundation.errors import FormatError

_MOST_STEPS = 150_000
"""Maximum number of statements and expressions that are followed in one file."""

_DEEPEST = 12
"""Maximum depth of calls of functions that are read."""

_CONFIGURATIONS = frozenset(
    {"cfg", "config", "recipe", "model", "model_cfg", "model_config", "parallelism", "ddp", "train"}
)
"""Names of configurations and their parts."""


class _Returned(Exception):
    """Raised where a function returns, or raises."""


@dataclass(frozen=True, eq=False)
class RecipeFunction:
    """Function of a file."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    module: RecipeModule


@dataclass(eq=False)
class RecipeScope:
    """Names of a function while it is read.

    Attributes
    ----------
    site
        Call of a function that changes its argument: the place of what it sets, as the function may serve several recipes.
    made
        Objects that are made and left.
    unsure
        Whether the function may not be called, or may have returned, so that what follows is unknown.
    """

    module: RecipeModule
    names: dict[str, Stated]
    site: SettingPlace | None = None
    made: list[Made] = field(default_factory=list)
    result: Stated = field(default_factory=lambda: Stated(None))
    unsure: bool = False


class RecipeReader:
    """Follows a module and the functions that it calls, in its own and in other files."""

    def __init__(self, module: RecipeModule) -> None:
        self.module = module
        self._files = RecipeFiles()
        self._steps = self._depth = 0
        self._doubt = False

    def run(self, body: Sequence[ast.stmt], scope: RecipeScope) -> None:
        """Follow the statements of a function to its end."""
        with suppress(_Returned):
            self._follow(body, scope)

    def value(self, node: ast.expr, scope: RecipeScope) -> Any:
        """Return the value of an expression; UNKNOWN if only a run would know it."""
        return self.stated(node, scope).raw

    def stated(self, node: ast.expr, scope: RecipeScope) -> Stated:
        """Return the value of an expression with the place where it is written; UNKNOWN if only a run would know it."""
        self._spend()
        try:
            match node:
                case ast.Name():
                    named = self._named(node.id, scope)
                    # An argument is changed where it is passed; a variable, where it is used.
                    passed = self._depth or setting_of(node.id) is not None
                    return named if passed else named._replace(place=self._place(node, scope))
                case ast.Attribute() | ast.Subscript():
                    return self._member(node, scope)
                case ast.IfExp():
                    decides = truth(self.value(node.test, scope))
                    if decides is not UNKNOWN:
                        return self.stated(node.body if decides else node.orelse, scope)
                case _:
                    return Stated(self._evaluated(node, scope), self._place(node, scope))
        except (TypeError, ValueError, ArithmeticError, LookupError, MemoryError):
            pass
        return Stated(UNKNOWN, self._place(node, scope))

    def _spend(self) -> int:
        """Count a step. Raises FormatError for a file that takes too many."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise FormatError(f"{self.module.file} takes more than {_MOST_STEPS:,} steps to follow")
        return self._steps

    def _follow(self, body: Sequence[ast.stmt], scope: RecipeScope) -> None:
        for statement in body:
            self._spend()
            if scope.unsure and self._depth:
                self._undecided([statement], scope)
            else:
                self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: RecipeScope) -> None:  # noqa: PLR0912 - a row per statement
        match node:
            case ast.Assign() | ast.AnnAssign() if node.value is not None:
                stated = self.stated(node.value, scope)
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._assign(target, stated, scope)
            case ast.Expr():
                made = self.value(node.value, scope)
                scope.made += [made] if isinstance(made, Made) and made.fields else []
            case ast.Assert(test=ast.Compare(left=ast.Attribute() as left, ops=[ast.Eq()], comparators=[right])):
                # What a plan's recipe asserts of its model is so: ``assert cfg.model.num_layers == 80``.
                if setting_of(left.attr) is not None:
                    self._assign(left, self.stated(right, scope), scope)
            case ast.Return():
                if node.value is not None and not scope.unsure:
                    scope.result = self.stated(node.value, scope)
                raise _Returned
            case ast.Raise():
                scope.result = Stated(UNKNOWN)
                raise _Returned
            case ast.With() | ast.Try():
                self._follow(node.body, scope)
            case ast.If():
                decides = truth(self.value(node.test, scope))
                if decides is UNKNOWN:
                    self._undecided([*node.body, *node.orelse], scope)
                else:
                    self._follow(node.body if decides else node.orelse, scope)
            case ast.FunctionDef() | ast.ClassDef():
                scope.names[node.name] = Stated(UNKNOWN)
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    scope.names[alias.asname or alias.name] = self._imported(scope.module, node, alias)
            case _:
                self._undecided([node], scope)

    def _undecided(self, body: Sequence[ast.stmt], scope: RecipeScope) -> None:
        """Mark what statements may set as unknown, and what follows if they may return."""
        for inner in (inner for statement in body for inner in ast.walk(statement)):
            match inner:
                case ast.Assign():
                    for target in inner.targets:
                        self._assign(target, Stated(UNKNOWN, self._place(inner.value, scope)), scope)
                case ast.AnnAssign() | ast.AugAssign() | ast.For():
                    self._assign(inner.target, Stated(UNKNOWN, self._place(inner.target, scope)), scope)
                case ast.Call():
                    doubt, self._doubt = self._doubt, True
                    self.value(inner, scope)
                    self._doubt = doubt
                case ast.Return():
                    scope.unsure = True

    def _assign(self, target: ast.expr, stated: Stated, scope: RecipeScope) -> None:
        """Set the names, fields or items of a target."""
        match target:
            case ast.Name():
                scope.names[target.id] = stated
            case ast.Tuple() | ast.List():
                raw = stated.raw
                for place, part in enumerate(target.elts):
                    whole = isinstance(raw, list | tuple) and len(raw) == len(target.elts)
                    self._assign(part, stated._replace(raw=raw[place] if whole else UNKNOWN), scope)
            case ast.Attribute() | ast.Subscript():
                key = target.attr if isinstance(target, ast.Attribute) else self.value(target.slice, scope)
                owner = self._owner(target.value, scope)
                if owner is not None and key is not UNKNOWN:
                    owner.set(key, stated, self._spend())

    def _owner(self, node: ast.expr, scope: RecipeScope) -> Made | None:
        """Return the object that an expression names, made where the file does not say what it is."""
        raw = self.value(node, scope)
        if isinstance(raw, Made | list | tuple | str | int | float):
            return raw if isinstance(raw, Made) else None
        made = Made(open=True)
        self._assign(node, Stated(made), scope)
        return made

    def _evaluated(self, node: ast.expr, scope: RecipeScope) -> Any:  # noqa: PLR0911 - a row per expression
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None):
                return node.value
            case ast.List() | ast.Tuple():
                values = listed([self.value(part, scope) for part in node.elts])
                return tuple(values) if isinstance(node, ast.Tuple) and values is not UNKNOWN else values
            case ast.Dict():
                return self._mapping(zip(node.keys, node.values, strict=True), "dict", scope)
            case ast.BinOp():
                return combined(node.op, self.value(node.left, scope), self.value(node.right, scope))
            case ast.UnaryOp(op=ast.USub()):
                return combined(ast.Mult(), -1, self.value(node.operand, scope))
            case ast.UnaryOp(op=ast.Not()):
                decides = truth(self.value(node.operand, scope))
                return UNKNOWN if decides is UNKNOWN else not decides
            case ast.Compare(ops=[operator], comparators=[right]):
                return combined(operator, self.value(node.left, scope), self.value(right, scope))
            case ast.BoolOp():
                return self._joined(node, scope)
            case ast.ListComp(generators=[ast.comprehension(ifs=[]) as loop]):
                values = self.value(loop.iter, scope)
                parts = []
                for value in values if isinstance(values, list) else ():
                    inner = replace(scope, names=dict(scope.names))
                    self._assign(loop.target, Stated(value), inner)
                    parts.append(self.value(node.elt, inner))
                return listed(parts) if isinstance(values, list) else UNKNOWN
            case ast.Call():
                return self._call(node, scope)
        return UNKNOWN

    def _mapping(self, pairs: Any, callee: str, scope: RecipeScope) -> Made:
        """Return the object of keys and values; an unpacked one that is unknown leaves it open."""
        made = Made(callee)
        for key, node in pairs:
            stated = self.stated(node, scope)
            if key is not None:
                made.set(key if isinstance(key, str) else self.value(key, scope), stated, self._spend())
            elif isinstance(stated.raw, Made):
                made.open |= stated.raw.open
                made.fields |= stated.raw.fields
            else:
                made.open = True
        return made

    def _joined(self, node: ast.BoolOp, scope: RecipeScope) -> Any:
        """Return the value of a conjunction or disjunction: of the part that decides it, if all before it are known."""
        values = [self.value(part, scope) for part in node.values]
        if isinstance(node.op, ast.And) and any(value is False for value in values):
            return False
        for value in values:
            decides = truth(value)
            if decides is UNKNOWN:
                return UNKNOWN
            if decides == isinstance(node.op, ast.Or):
                return value
        return values[-1]

    def _named(self, name: str, scope: RecipeScope) -> Stated:
        if name not in scope.names:
            found = self._global(scope.module, name)
            # What a function changes is its own copy: another one begins with the module's.
            scope.names[name] = found._replace(raw=cloned(found.raw))
        return scope.names[name]

    def _global(self, module: RecipeModule, name: str) -> Stated:
        """Return what a name of a module is bound to, in whichever file."""
        if name not in module.names:
            module.names[name] = Stated(External(name))
            match module.bindings.get(name):
                case ast.FunctionDef() | ast.AsyncFunctionDef() as node:
                    module.names[name] = Stated(RecipeFunction(node, module))
                case ast.ClassDef():
                    module.names[name] = Stated(External(name, own=module is self.module))
                case ast.Assign() | ast.AnnAssign() as node if node.value is not None:
                    module.names[name] = self.stated(node.value, RecipeScope(module, module.names))
                case ast.Import() | ast.ImportFrom() as node:
                    alias = next(one for one in node.names if name in (one.asname, one.name))
                    module.names[name] = self._imported(module, node, alias)
                case None:
                    others = (self._files.imported(module, star) for star in module.stars)
                    bound = next((other for other in others if other is not None and name in other.bindings), None)
                    module.names[name] = Stated(External(name)) if bound is None else self._global(bound, name)
        return module.names[name]

    def _imported(self, module: RecipeModule, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> Stated:
        if isinstance(node, ast.Import):
            return Stated(External(alias.name))
        other = None if alias.name == "model_registry" else self._files.imported(module, node)
        if other is not None and other is not module and (alias.name in other.bindings or other.stars):
            found = self._global(other, alias.name)
            if not isinstance(found.raw, External):
                return found
        within = node.module or (module.folder.name if node.level == 1 and module.folder else "")
        return Stated(External(f"{within}.{alias.name}"))

    def _member(self, node: ast.Attribute | ast.Subscript, scope: RecipeScope) -> Stated:
        owner = self.value(node.value, scope)
        key: Any = node.attr if isinstance(node, ast.Attribute) else self.value(node.slice, scope)
        value: Any = UNKNOWN
        if isinstance(owner, Made) and key in owner:
            return owner.fields[key]
        if isinstance(owner, Made) and key == "virtual_pipeline_model_parallel_size":
            # A provider has no virtual stages before a recipe sets them.
            value = None
        elif isinstance(owner, External) and isinstance(node, ast.Attribute):
            value = External(f"{owner.name}.{key}", owner.own)
        elif isinstance(owner, list | tuple) and isinstance(node, ast.Subscript):
            value = owner[key]
        return Stated(value, self._place(node, scope))

    def _call(self, node: ast.Call, scope: RecipeScope) -> Any:
        positional = [self._argument(one, scope) for one in node.args]
        made = self._mapping(((one.arg, one.value) for one in node.keywords), "", scope)
        made.place = self._place(node.func, scope)
        made.open |= any(isinstance(one, ast.Starred) for one in node.args)
        if isinstance(node.func, ast.Attribute) and (result := self._of_method(node.func, made, scope)) is not None:
            return result
        made.fields = {**dict(enumerate(positional)), **made.fields}
        function = self.value(node.func, scope)
        if isinstance(function, RecipeFunction):
            found = self._followed(function, made, node, scope)
            if found is not UNKNOWN or not is_helper(function.node.name):
                return found
            function = External(function.node.name)
        name = function.name if isinstance(function, External) else _last_name(node.func)
        with suppress(KeyError):
            return builtin(name.rpartition(".")[2], [one.raw for one in positional])
        self._may_change(node, positional, scope)
        if not isinstance(function, External) and function is not UNKNOWN:
            return UNKNOWN
        made.callee = name
        made.open |= isinstance(function, External) and function.own
        return prepared(made)

    def _of_method(self, function: ast.Attribute, made: Made, scope: RecipeScope) -> Any:
        """Return what a method of a known value returns; None for another function."""
        owner = self.value(function.value, scope)
        if isinstance(owner, Made) and not owner.is_dict:
            # A provider's method returns it: ``AutoBridge.from_hf_pretrained(...).to_megatron_provider()``.
            owner = cloned(owner) if function.attr == "copy" else owner
            unknown = {key: Stated(UNKNOWN, made.place) for key in made.fields}
            owner.fields |= unknown if self._doubt else made.fields
            return owner
        if isinstance(owner, str) and function.attr == "lower":
            return owner.lower()
        if isinstance(owner, list | Made) and function.attr not in CONSUMERS:
            self._assign(function.value, Stated(UNKNOWN, made.place), scope)
        return None

    def _argument(self, node: ast.expr, scope: RecipeScope) -> Stated:
        """Return an argument; a configuration that the file does not make is made, for a function to set."""
        if _last_name(node) in _CONFIGURATIONS and not isinstance(self.value(node, scope), Made):
            self._owner(node, scope)
        return self.stated(node, scope)

    def _may_change(self, node: ast.Call, arguments: Sequence[Stated], scope: RecipeScope) -> None:
        """Mark what a function that is not read may change: the layout if it is named for it, or settings of a table."""
        name = _last_name(node.func)
        if name in CONSUMERS:
            return
        changed = settings_changed_by(name)
        for owner in (one.raw for one in arguments if isinstance(one.raw, Made) and not one.raw.is_dict):
            owner.open |= changed is None and name[:1].islower()
            for key in changed or (["pipeline_model_parallel_layout"] if "layout" in name.lower() else []):
                owner.set(key, Stated(UNKNOWN, self._place(node, scope)), self._spend())

    def _followed(self, function: RecipeFunction, passed: Made, node: ast.Call, scope: RecipeScope) -> Any:
        """Return what a function of a file returns."""
        changes = any(isinstance(one.raw, Made) and not one.raw.is_dict for one in passed.fields.values())
        if self._depth >= _DEEPEST or (self._doubt and not changes):
            return UNKNOWN
        inner = RecipeScope(function.module, {}, unsure=self._doubt)
        inner.site = scope.site or (self._place(node, scope, within=False) if changes else None)
        given = dict(passed.fields)
        for place, (name, default) in enumerate(parameters_of(function.node)):
            absent = Stated(UNKNOWN) if passed.open or default is None else self.stated(default, inner)
            inner.names[name] = given.pop(name, given.pop(place, absent))
        if function.node.args.kwarg is not None:
            rest = {key: one for key, one in given.items() if isinstance(key, str)}
            inner.names[function.node.args.kwarg.arg] = Stated(Made("dict", fields=rest, open=passed.open))
        self._depth += 1
        try:
            self.run(function.node.body, inner)
        finally:
            self._depth -= 1
        return UNKNOWN if inner.unsure else inner.result.raw

    def _place(self, node: ast.expr, scope: RecipeScope, *, within: bool = True) -> SettingPlace:
        """Return the place of an expression, or of the call that changes a configuration, which has no columns."""
        if scope.site is not None:
            return scope.site
        if not within or node.end_lineno != node.lineno or node.end_col_offset is None:
            return SettingPlace(scope.module.file, node.lineno)
        # Columns of the syntax tree are bytes of UTF-8.
        text = scope.module.lines[node.lineno - 1].encode()
        columns = (len(text[:byte].decode(errors="ignore")) for byte in (node.col_offset, node.end_col_offset))
        return SettingPlace(scope.module.file, node.lineno, "", *columns)


def _last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name; empty for another expression."""
    match node:
        case ast.Attribute():
            return node.attr
        case ast.Name():
            return node.id
    return ""


def parameters_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the parameters of a function with their defaults."""
    named = [*node.args.posonlyargs, *node.args.args]
    defaults = [None] * (len(named) - len(node.args.defaults)) + [*node.args.defaults, *node.args.kw_defaults]
    for argument, default in zip([*named, *node.args.kwonlyargs], defaults, strict=True):
        yield argument.arg, default
