"""Expressions of recipes: what they make, and where their values are written. Nothing is imported or executed."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.keys import setting_of
from pipeplan.extensions.review.readers.recipe_files import RecipeFiles, RecipeModule
from pipeplan.extensions.review.readers.recipe_names import CONSUMERS, prepared, settings_changed_by
from pipeplan.extensions.review.readers.recipe_values import (
    External,
    Made,
    Stated,
    builtin,
    cloned,
    combined,
    listed,
    method,
)
from pipeplan.extensions.review.settings import UNKNOWN
from pipeplan.foundation.errors import FormatError

_MOST_STEPS = 150_000
"""Maximum number of statements and expressions that are followed in one file."""

MOST_ROUNDS = 2_000
"""Maximum number of rounds of a loop."""

_CONFIGURATIONS = frozenset(
    {"cfg", "config", "recipe", "model", "model_cfg", "model_config", "parallelism", "ddp", "train"}
)
"""Names of configurations and their parts."""


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


class Expressions(ABC):
    """Evaluates the expressions of a module, and of the files from which it imports."""

    def __init__(self, module: RecipeModule) -> None:
        self.module = module
        self._files = RecipeFiles()
        self._steps = self.depth = 0

    @abstractmethod
    def assign(self, target: ast.expr, stated: Stated, scope: RecipeScope) -> None:
        """Set what a target names."""

    @abstractmethod
    def followed(self, function: RecipeFunction, passed: Made, node: ast.Call, scope: RecipeScope) -> Any:
        """Return what a function of a file returns."""

    def spend(self) -> int:
        """Count a step. Raises FormatError for a file that takes too many."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise FormatError(f"{self.module.file} takes more than {_MOST_STEPS:,} steps to follow")
        return self._steps

    def owner(self, node: ast.expr, scope: RecipeScope) -> Made | None:
        """Return the object that an expression names, made where the file does not say what it is."""
        raw = self.value(node, scope)
        if isinstance(raw, Made | list | tuple | str | int | float):
            return raw if isinstance(raw, Made) else None
        made = Made(open=True)
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            self.assign(node, Stated(made), scope)
        return made

    def value(self, node: ast.expr, scope: RecipeScope) -> Any:
        """Return the value of an expression; UNKNOWN if only a run would know it."""
        return self.stated(node, scope).raw

    def stated(self, node: ast.expr, scope: RecipeScope) -> Stated:
        """Return the value of an expression with the place where it is written; UNKNOWN if only a run would know it."""
        self.spend()
        try:
            match node:
                case ast.Name():
                    named = self._named(node.id, scope)
                    # An argument is changed where it is passed; a variable, where it is used.
                    passed = self.depth or setting_of(node.id) is not None
                    return named if passed else named._replace(place=self.place(node, scope))
                case ast.Attribute() | ast.Subscript() if (found := self._member(node, scope)) is not None:
                    return found
                case ast.IfExp():
                    decides = truth(self.value(node.test, scope))
                    if decides is not UNKNOWN:
                        return self.stated(node.body if decides else node.orelse, scope)
                case ast.BoolOp():
                    return self._joined(node, scope)
                case _:
                    return Stated(self._evaluated(node, scope), self.place(node, scope))
        except (TypeError, ValueError, ArithmeticError, LookupError, MemoryError, AttributeError):
            pass
        return Stated(UNKNOWN, self.place(node, scope))

    def _evaluated(self, node: ast.expr, scope: RecipeScope) -> Any:  # noqa: PLR0911 - a row per expression
        match node:
            case ast.Constant():
                return UNKNOWN if isinstance(node.value, bytes | complex) or node.value is ... else node.value
            case ast.List() | ast.Tuple():
                parts = [self.value(part, scope) for part in node.elts]
                values = listed(parts)
                return values if isinstance(node, ast.List) or values is UNKNOWN else tuple(values)
            case ast.Dict():
                return self._mapping(zip(node.keys, node.values, strict=True), "dict", scope)
            case ast.BinOp():
                return combined(node.op, self.value(node.left, scope), self.value(node.right, scope))
            case ast.UnaryOp(op=ast.USub()):
                return combined(ast.Mult(), -1, self.value(node.operand, scope))
            case ast.UnaryOp(op=ast.Not()):
                decides = truth(self.value(node.operand, scope))
                return UNKNOWN if decides is UNKNOWN else not decides
            case ast.Compare():
                values = [self.value(one, scope) for one in (node.left, *node.comparators)]
                results = [combined(*one) for one in zip(node.ops, values, values[1:], strict=False)]
                return False if False in results else UNKNOWN if UNKNOWN in results else True
            case ast.ListComp(elt=part, generators=[ast.comprehension(ifs=[]) as loop]):
                return self._listed(part, loop, scope)
            case ast.Call():
                return self._call(node, scope)
        return UNKNOWN

    def _listed(self, part: ast.expr, loop: ast.comprehension, scope: RecipeScope) -> Any:
        """Return the list of an expression for each value of a list."""
        values = self.value(loop.iter, scope)
        if not isinstance(values, list | tuple) or len(values) > MOST_ROUNDS:
            return UNKNOWN
        inner = replace(scope, names=dict(scope.names))
        parts = []
        for value in values:
            self.assign(loop.target, Stated(value), inner)
            parts.append(self.value(part, inner))
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
                name = key if isinstance(key, str) else self.value(key, scope)
                made.set(name, stated, self.spend())
        return made

    def _joined(self, node: ast.BoolOp, scope: RecipeScope) -> Stated:
        stated = Stated(UNKNOWN)
        unknown = False
        for part in node.values:
            stated = self.stated(part, scope)
            decides = truth(stated.raw)
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
            scope.names[name] = found._replace(raw=cloned(found.raw))
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
        owner = self.value(node.value, scope)
        key: Any = node.attr if isinstance(node, ast.Attribute) else self.value(node.slice, scope)
        match owner:
            case Made() if key in owner:
                return owner.fields[key]
            case Made() if key == "virtual_pipeline_model_parallel_size":
                # A provider has no virtual stages before a recipe sets them.
                return Stated(None)
            case External() if isinstance(node, ast.Attribute):
                return Stated(External(f"{owner.name}.{key}"), self.place(node, scope))
            case RecipeFunction() if isinstance(node, ast.Attribute):
                return Stated(External(f"{owner.node.name}.{key}"), self.place(node, scope))
            case list() | tuple() | str() if isinstance(node, ast.Subscript):
                return Stated(owner[key], self.place(node, scope))
        return None

    def _call(self, node: ast.Call, scope: RecipeScope) -> Any:  # noqa: PLR0911 - a row per kind of function
        positional = [self._argument(one.value if isinstance(one, ast.Starred) else one, scope) for one in node.args]
        made = self._mapping(((one.arg, one.value) for one in node.keywords), "", scope)
        arguments = [stated.raw for stated in positional]
        made.place = self.place(node.func, scope)
        made.open |= any(isinstance(one, ast.Starred) for one in node.args)
        made.fields = {**dict(enumerate(positional)), **made.fields}
        function: Any = None
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value, scope)
            if isinstance(owner, Made) and not owner.is_dict:
                # A provider's method returns it: ``AutoBridge.from_hf_pretrained(...).to_megatron_provider()``.
                owner = cloned(owner) if node.func.attr == "copy" else owner
                owner.fields |= {key: one for key, one in made.fields.items() if not isinstance(key, int)}
                return owner
            function = self.value(node.func, scope)
            if function is UNKNOWN:
                if owner is not UNKNOWN:
                    return UNKNOWN if node.keywords else method(owner, node.func.attr, arguments)
                function = External(node.func.attr)
        else:
            function = self.value(node.func, scope)
        if isinstance(function, External) and function.name.rpartition(".")[2] == "partial" and arguments:
            function, made.fields = arguments[0], {key: one for key, one in made.fields.items() if key != 0}
            if isinstance(function, RecipeFunction):
                return replace(function, bound={**function.bound, **made.fields})
        if isinstance(function, RecipeFunction) and function.module is not self.module:
            # Of a class in another file, the tables say what is known.
            function = External(function.node.name) if isinstance(function.node, ast.ClassDef) else function
        if isinstance(function, RecipeFunction):
            return self.followed(function, made, node, scope)
        if not isinstance(function, External):
            return UNKNOWN
        if function.name.rpartition(".")[2] == "replace" and arguments and isinstance(arguments[0], Made):
            changed: Made = cloned(arguments[0])
            changed.fields |= {key: one for key, one in made.fields.items() if key != 0}
            return changed
        try:
            named = [External(one.node.name) if isinstance(one, RecipeFunction) else one for one in arguments]
            return builtin(function.name, named)
        except KeyError:
            pass
        self.may_change(node, arguments, scope)
        made.callee = function.name
        return prepared(made)

    def _argument(self, node: ast.expr, scope: RecipeScope) -> Stated:
        """Return an argument; a configuration that the file does not make is made, for a function to set."""
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if name in _CONFIGURATIONS and not isinstance(self.value(node, scope), Made):
            self.owner(node, scope)
        return self.stated(node, scope)

    def may_change(self, node: ast.Call, arguments: list[Any], scope: RecipeScope) -> None:
        """Mark what a function that is not read may change: the layout if it is named for it, or settings of a table."""
        name = ast.unparse(node.func).rpartition(".")[2]
        owners = [one for one in arguments if isinstance(one, Made) and not one.is_dict]
        if name in CONSUMERS:
            return
        for owner in owners:
            changed = settings_changed_by(name)
            owner.open |= changed is None and name[:1].islower()
            for key in changed or (["pipeline_model_parallel_layout"] if "layout" in name.lower() else []):
                owner.set(key, Stated(UNKNOWN, self.place(node, scope)), self.spend())

    def instance(self, node: ast.ClassDef, given: Mapping[Any, Stated], passed: Made) -> Made:
        """Return what a class of the recipe makes: the defaults of its first base and its own, and the arguments."""
        base = self.value(node.bases[0], RecipeScope(self.module, {})) if node.bases else External(node.name)
        if isinstance(base, RecipeFunction) and isinstance(base.node, ast.ClassDef) and base.module is self.module:
            made = self.instance(base.node, {}, passed)
        else:
            name = base.node.name if isinstance(base, RecipeFunction) else getattr(base, "name", "")
            made = prepared(Made(name, passed.place))
        made.open |= passed.open
        for default in node.body:
            if isinstance(default, ast.AnnAssign) and default.value and isinstance(default.target, ast.Name):
                made.set(default.target.id, self.stated(default.value, RecipeScope(self.module, {})), self.spend())
        made.fields |= given
        return made

    def place(self, node: ast.expr, scope: RecipeScope, *, within: bool = True) -> SettingPlace:
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


def truth(value: Any) -> Any:
    """Return whether a value counts as true; UNKNOWN for an unknown one."""
    if value is UNKNOWN or isinstance(value, External) or (isinstance(value, Made) and value.open):
        return UNKNOWN
    return bool(value.fields) or not value.is_dict if isinstance(value, Made) else bool(value)


def _characters(text: str, byte: int) -> int:
    return len(text.encode()[:byte].decode(errors="ignore"))
