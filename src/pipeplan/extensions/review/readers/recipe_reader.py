"""Follows the statements of recipes on the syntax tree, within limits. Nothing is imported or executed."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.readers.recipe_files import RecipeFiles, RecipeModule
from pipeplan.extensions.review.readers.recipe_names import CONSUMERS, prepared, settings_changed_by
from pipeplan.extensions.review.readers.recipe_values import External, Made, Stated, builtin, combined, listed, method
from pipeplan.extensions.review.settings import UNKNOWN, setting_of
from pipeplan.foundation.errors import FormatError

_MOST_STEPS = 150_000
"""Maximum number of statements and expressions that are followed in one file."""

_DEEPEST = 12
"""Maximum depth of calls of functions that are read."""

_MOST_ROUNDS = 2_000
"""Maximum number of rounds of a loop."""


class _Returned(Exception):
    """Raised where a function returns."""


class _Raised(Exception):
    """Raised where a recipe raises."""


@dataclass(frozen=True, eq=False)
class RecipeFunction:
    """Function or class of a file, with the names around it and the arguments that ``partial`` has bound."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    module: RecipeModule
    around: Mapping[str, Stated] = field(default_factory=dict)
    bound: Mapping[Any, Stated] = field(default_factory=dict)


@dataclass(eq=False)
class RecipeScope:
    """Names of a function while it is read.

    Attributes
    ----------
    site
        Call of a function that changes its argument: the place of what it sets, as the function may serve several recipes.
    unsure
        Whether the function may have returned, so that what follows is unknown.
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

    # Statements

    def _spend(self) -> int:
        """Count a step. Raises FormatError for a file that takes too many."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise FormatError(f"{self.module.file} takes more than {_MOST_STEPS:,} steps to follow")
        return self._steps

    def run(self, body: Sequence[ast.stmt], scope: RecipeScope) -> None:
        """Follow the statements of a function to its end."""
        try:
            self._follow(body, scope)
        except _Returned:
            pass
        except _Raised:
            if self._depth:
                raise

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
            case ast.AugAssign():
                changed = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
                raw = self._value(changed, scope)
                self._assign(node.target, Stated(raw, self._place(node.value, scope)), scope)
            case ast.Expr():
                made = self._value(node.value, scope)
                scope.made += [made] if isinstance(made, Made) and made.fields else []
            case ast.Assert(test=ast.Compare(left=ast.Attribute() as left, ops=[ast.Eq()], comparators=[right])):
                # What a recipe asserts of its model is so: ``assert cfg.model.num_layers == 80``.
                if setting_of(left.attr) is not None:
                    self._assign(left, self.stated(right, scope), scope)
            case ast.Return():
                if not scope.unsure:
                    scope.result = Stated(None) if node.value is None else self.stated(node.value, scope)
                raise _Returned
            case ast.Raise():
                raise _Raised
            case ast.With() | ast.AsyncWith():
                self._follow(node.body, scope)
            case ast.If():
                decides = _truth(self._value(node.test, scope))
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
        values = self._value(node.iter, scope)
        if not isinstance(values, list | tuple) or len(values) > _MOST_ROUNDS:
            self._undecided([node], scope)
            return
        for value in values:
            self._assign(node.target, Stated(value, self._place(node.iter, scope)), scope)
            self._follow(node.body, scope)

    def _undecided(self, body: Sequence[ast.stmt], scope: RecipeScope) -> None:
        """Mark what statements may set as unknown, and what follows if they may return."""
        for inner in (inner for statement in body for inner in ast.walk(statement)):
            match inner:
                case ast.Assign():
                    for target in inner.targets:
                        self._assign(target, Stated(UNKNOWN, self._place(inner.value, scope)), scope)
                case ast.AnnAssign() | ast.AugAssign() | ast.For():
                    self._assign(inner.target, Stated(UNKNOWN, self._place(inner.target, scope)), scope)
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "insert")):
                    scope.names[name] = Stated(UNKNOWN)
                case ast.Call():
                    self._perhaps_called(inner, scope)
                case ast.Return():
                    scope.unsure = True

    def _perhaps_called(self, node: ast.Call, scope: RecipeScope) -> None:
        """Mark as unknown what a function may change of the configurations that it gets, if it is called."""
        arguments = [self._value(one, scope) for one in (*node.args, *(keyword.value for keyword in node.keywords))]
        if not any(isinstance(one, Made) and not one.is_dict for one in arguments):
            return
        if isinstance(self._value(node.func, scope), RecipeFunction):
            doubt, self._doubt = self._doubt, True
            self._value(node, scope)
            self._doubt = doubt
        else:
            self._may_change(node, arguments, scope)

    def _assign(self, target: ast.expr, stated: Stated, scope: RecipeScope) -> None:
        match target:
            case ast.Name():
                scope.names[target.id] = stated
            case ast.Tuple() | ast.List():
                raw = stated.raw
                parts = raw if isinstance(raw, list | tuple) and len(raw) == len(target.elts) else None
                for place, part in enumerate(target.elts):
                    first = raw if isinstance(raw, Made) and not place else UNKNOWN
                    self._assign(part, stated._replace(raw=first if parts is None else parts[place]), scope)
            case ast.Attribute() | ast.Subscript():
                key = target.attr if isinstance(target, ast.Attribute) else self._value(target.slice, scope)
                owner = self._owner(target.value, scope)
                if owner is not None and key is not UNKNOWN:
                    owner.set(key, stated, self._spend())

    def _owner(self, node: ast.expr, scope: RecipeScope) -> Made | None:
        """Return the object that an expression names, made where the file does not say what it is."""
        raw = self._value(node, scope)
        if isinstance(raw, Made | list | tuple | str | int | float):
            return raw if isinstance(raw, Made) else None
        made = Made(open=True)
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            self._assign(node, Stated(made), scope)
        return made

    # Expressions

    def _value(self, node: ast.expr, scope: RecipeScope) -> Any:
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
                case ast.Attribute() | ast.Subscript() if (found := self._member(node, scope)) is not None:
                    return found
                case ast.IfExp():
                    decides = _truth(self._value(node.test, scope))
                    if decides is not UNKNOWN:
                        return self.stated(node.body if decides else node.orelse, scope)
                case ast.BoolOp():
                    return self._joined(node, scope)
                case _:
                    return Stated(self._evaluated(node, scope), self._place(node, scope))
        except (TypeError, ValueError, ArithmeticError, LookupError, MemoryError, AttributeError):
            pass
        return Stated(UNKNOWN, self._place(node, scope))

    def _evaluated(self, node: ast.expr, scope: RecipeScope) -> Any:  # noqa: PLR0911 - a row per expression
        match node:
            case ast.Constant():
                return UNKNOWN if isinstance(node.value, bytes | complex) or node.value is ... else node.value
            case ast.List() | ast.Tuple():
                parts = [self._value(part, scope) for part in node.elts]
                values = listed(parts)
                return values if isinstance(node, ast.List) or values is UNKNOWN else tuple(values)
            case ast.Dict():
                return self._mapping(zip(node.keys, node.values, strict=True), "dict", scope)
            case ast.BinOp():
                return combined(node.op, self._value(node.left, scope), self._value(node.right, scope))
            case ast.UnaryOp(op=ast.USub()):
                return combined(ast.Mult(), -1, self._value(node.operand, scope))
            case ast.UnaryOp(op=ast.Not()):
                decides = _truth(self._value(node.operand, scope))
                return UNKNOWN if decides is UNKNOWN else not decides
            case ast.Compare():
                values = [self._value(one, scope) for one in (node.left, *node.comparators)]
                results = [combined(*one) for one in zip(node.ops, values, values[1:], strict=False)]
                return False if False in results else UNKNOWN if UNKNOWN in results else True
            case ast.ListComp(elt=part, generators=[ast.comprehension(ifs=[]) as loop]):
                return self._listed(part, loop, scope)
            case ast.Call():
                return self._call(node, scope)
        return UNKNOWN

    def _listed(self, part: ast.expr, loop: ast.comprehension, scope: RecipeScope) -> Any:
        """Return the list of an expression for each value of a list."""
        values = self._value(loop.iter, scope)
        if not isinstance(values, list | tuple) or len(values) > _MOST_ROUNDS:
            return UNKNOWN
        inner = replace(scope, names=dict(scope.names))
        parts = []
        for value in values:
            self._assign(loop.target, Stated(value), inner)
            parts.append(self._value(part, inner))
        return listed(parts)

    def _mapping(self, pairs: Any, callee: str, scope: RecipeScope) -> Made:
        """Return the object of keys and values; an unpacked one that is unknown leaves it open."""
        made = Made(callee)
        for key, node in pairs:
            stated = self.stated(node, scope)
            if key is None:
                made.open |= not isinstance(stated.raw, Made) or stated.raw.open
                made.fields |= stated.raw.fields if isinstance(stated.raw, Made) else {}
            else:
                name = key if isinstance(key, str) else self._value(key, scope)
                made.set(name, stated, self._spend())
        return made

    def _joined(self, node: ast.BoolOp, scope: RecipeScope) -> Stated:
        stated = Stated(UNKNOWN)
        unknown = False
        for part in node.values:
            stated = self.stated(part, scope)
            decides = _truth(stated.raw)
            unknown |= decides is UNKNOWN
            if decides is not UNKNOWN and decides == isinstance(node.op, ast.Or):
                break
        # One value that is false makes a conjunction false, whatever the others are.
        return (
            Stated(UNKNOWN, stated.place)
            if unknown and not (isinstance(node.op, ast.And) and stated.raw is False)
            else stated
        )

    def _named(self, name: str, scope: RecipeScope) -> Stated:
        if name not in scope.names:
            found = self._global(scope.module, name)
            # What a function changes is its own copy: another one begins with the module's.
            scope.names[name] = copy.deepcopy(found) if isinstance(found.raw, Made | list) else found
        return scope.names[name]

    def _global(self, module: RecipeModule, name: str) -> Stated:
        """Return what a name of a module is bound to, in whichever file."""
        if name not in module.names:
            module.names[name] = Stated(External(name))
            match module.bindings.get(name):
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() as node:
                    module.names[name] = Stated(RecipeFunction(node, module))
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

    def _member(self, node: ast.Attribute | ast.Subscript, scope: RecipeScope) -> Stated | None:
        owner = self._value(node.value, scope)
        key: Any = node.attr if isinstance(node, ast.Attribute) else self._value(node.slice, scope)
        match owner:
            case Made() if key in owner:
                return owner.fields[key]
            case Made() if key == "virtual_pipeline_model_parallel_size":
                # A provider has no virtual stages before a recipe sets them.
                return Stated(None)
            case External() if isinstance(node, ast.Attribute):
                return Stated(External(f"{owner.name}.{key}"), self._place(node, scope))
            case RecipeFunction() if isinstance(node, ast.Attribute):
                return Stated(External(f"{owner.node.name}.{key}"), self._place(node, scope))
            case list() | tuple() | str() if isinstance(node, ast.Subscript):
                return Stated(owner[key], self._place(node, scope))
        return None

    # Calls

    def _call(self, node: ast.Call, scope: RecipeScope) -> Any:  # noqa: PLR0911 - a row per kind of function
        positional = [self.stated(one.value if isinstance(one, ast.Starred) else one, scope) for one in node.args]
        made = self._mapping(((one.arg, one.value) for one in node.keywords), "", scope)
        arguments = [stated.raw for stated in positional]
        made.place = self._place(node.func, scope)
        made.open |= any(isinstance(one, ast.Starred) for one in node.args)
        made.fields = {**dict(enumerate(positional)), **made.fields}
        function: Any = None
        if isinstance(node.func, ast.Attribute):
            owner = self._value(node.func.value, scope)
            if isinstance(owner, Made) and not owner.is_dict:
                # A provider's method returns it: ``AutoBridge.from_hf_pretrained(...).to_megatron_provider()``.
                owner.fields |= {key: one for key, one in made.fields.items() if not isinstance(key, int)}
                return owner
            function = self._value(node.func, scope)
            if function is UNKNOWN:
                if owner is not UNKNOWN:
                    return UNKNOWN if node.keywords else method(owner, node.func.attr, arguments)
                function = External(node.func.attr)
        else:
            function = self._value(node.func, scope)
        if isinstance(function, External) and function.name.rpartition(".")[2] == "partial" and arguments:
            function, made.fields = arguments[0], {key: one for key, one in made.fields.items() if key != 0}
            if isinstance(function, RecipeFunction):
                return replace(function, bound={**function.bound, **made.fields})
        if isinstance(function, RecipeFunction):
            return self._followed(function, made, node, scope)
        if not isinstance(function, External):
            return UNKNOWN
        if function.name.rpartition(".")[2] == "replace" and arguments and isinstance(arguments[0], Made):
            return replace(
                copy.deepcopy(arguments[0]),
                fields={**arguments[0].fields, **{key: one for key, one in made.fields.items() if key != 0}},
            )
        try:
            return builtin(function.name, arguments)
        except KeyError:
            pass
        self._may_change(node, arguments, scope)
        made.callee = function.name
        return prepared(made)

    def _may_change(self, node: ast.Call, arguments: list[Any], scope: RecipeScope) -> None:
        """Mark what a function that is not read may change: the layout if it is named for it, or settings of a table."""
        name = ast.unparse(node.func).rpartition(".")[2]
        owners = [one for one in arguments if isinstance(one, Made) and not one.is_dict]
        if name in CONSUMERS:
            return
        for owner in owners:
            changed = settings_changed_by(name)
            owner.open |= changed is None and name[:1].islower()
            for key in changed or (["pipeline_model_parallel_layout"] if "layout" in name.lower() else []):
                owner.set(key, Stated(UNKNOWN, self._place(node, scope)), self._spend())

    def _followed(self, function: RecipeFunction, passed: Made, node: ast.Call, scope: RecipeScope) -> Any:
        """Return what a function of a file returns, or what a class of it makes."""
        if self._depth >= _DEEPEST:
            return UNKNOWN
        inner = RecipeScope(function.module, dict(function.around), scope.site, unsure=self._doubt)
        given = {**function.bound, **passed.fields}
        if isinstance(function.node, ast.ClassDef):
            return self._instance(function, given, passed, scope)
        parameters = dict(parameters_of(function.node))
        for place, (name, default) in enumerate(parameters.items()):
            absent = Stated(UNKNOWN) if passed.open or default is None else self.stated(default, inner)
            inner.names[name] = given.pop(name, given.pop(place, absent))
        if function.node.args.kwarg is not None:
            rest = {key: one for key, one in given.items() if isinstance(key, str)}
            inner.names[function.node.args.kwarg.arg] = Stated(Made("dict", fields=rest, open=passed.open))
        if any(
            isinstance(one.raw, Made) and not one.raw.is_dict for one in inner.names.values() if one.raw is not None
        ):
            changes = [one for one in passed.fields.values() if isinstance(one.raw, Made) and not one.raw.is_dict]
            inner.site = inner.site or (self._place(node, scope, within=False) if changes else None)
        self._depth += 1
        try:
            self.run(function.node.body, inner)
        finally:
            self._depth -= 1
        return UNKNOWN if inner.unsure else inner.result.raw

    def _instance(
        self, function: RecipeFunction, given: Mapping[Any, Stated], passed: Made, scope: RecipeScope
    ) -> Made:
        """Return what a class of a file makes: the defaults of its fields, those of its first base, and the arguments."""
        node = function.node
        assert isinstance(node, ast.ClassDef)
        base = self._value(node.bases[0], RecipeScope(function.module, {})) if node.bases else None
        made = Made(node.name, passed.place)
        if isinstance(base, RecipeFunction) and isinstance(base.node, ast.ClassDef) and base.node is not node:
            made = self._instance(base, {}, passed, scope)
        elif isinstance(base, External):
            made = prepared(Made(base.name, passed.place))
        made.open |= passed.open
        for field_node in node.body if function.module is self.module else ():
            if isinstance(field_node, ast.AnnAssign) and field_node.value and isinstance(field_node.target, ast.Name):
                default = self.stated(field_node.value, RecipeScope(function.module, {}))
                made.set(field_node.target.id, default, self._spend())
        made.fields |= given
        return made

    def _place(self, node: ast.expr, scope: RecipeScope, *, within: bool = True) -> SettingPlace:
        """Return the place of an expression, or of the call that changes a configuration, which has no columns."""
        if scope.site is not None:
            return scope.site
        line = node.lineno
        end = node.end_col_offset if within and node.end_lineno == line and node.end_col_offset is not None else -1
        lines = scope.module.lines
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        # Columns of the syntax tree are bytes of UTF-8.
        start, stop = (_characters(text, node.col_offset), _characters(text, end)) if end >= 0 else (-1, -1)
        return SettingPlace(scope.module.file, line, "", start, stop)


def parameters_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the parameters of a function with their defaults."""
    named = [*node.args.posonlyargs, *node.args.args]
    without = len(named) - len(node.args.defaults)
    yield from ((argument.arg, None) for argument in named[:without])
    yield from ((argument.arg, default) for argument, default in zip(named[without:], node.args.defaults, strict=True))
    yield from (
        (argument.arg, default) for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    )


def _truth(value: Any) -> Any:
    """Return whether a value counts as true; UNKNOWN for an unknown one."""
    if value is UNKNOWN or isinstance(value, External) or (isinstance(value, Made) and value.open):
        return UNKNOWN
    return bool(value.fields) or not value.is_dict if isinstance(value, Made) else bool(value)


def _characters(text: str, byte: int) -> int:
    return len(text.encode()[:byte].decode(errors="ignore"))
