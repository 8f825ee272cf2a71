"""Python recipes: functions and objects that set options, by their syntax tree. Nothing is imported or executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.readers.recipe_values import Expressions, FunctionScope, LocalFunction, combined, truth
from pipeplan.extensions.review.settings import UNKNOWN, setting_of, switch_of
from pipeplan.extensions.review.stated import RawEntry, counts_tokens
from pipeplan.foundation.errors import FormatError

_MOST_STEPS = 150_000
"""Maximum number of statements and expressions that are followed in one file."""

_DEEPEST = 12
"""Maximum depth of calls of the file's own functions."""

_NEAR = 500
"""Number of settings among which a value's first place is looked for."""

_MOST_ROUNDS = 2_000
"""Maximum number of rounds of a loop."""

_HUB_NAME = re.compile(r"(?![./])[\w.-]+/[\w.-]+")
"""Matches the name of a model on a hub."""

_CHECKPOINTING = {"FullAC": "full", "SelectiveAC": "selective", "MemoryBudgetAC": "selective"}
"""torchtitan's classes of activation checkpointing."""

_TELLING = frozenset(
    {"tp", "pp", "cp", "ep", "vpp", "micro_batch", "global_batch", "local_batch", "layout", "dp_shard", "schedule"}
    | {"seq_length", "modules_per_part", "microbatches"}
)
"""Settings of parallel training, by which a configuration is told from other code."""

_FEWEST = 2
"""Minimum number of known settings that make a function or an object a configuration."""


@dataclass(frozen=True, slots=True)
class PythonRecipe:
    """Configuration in a Python file: its name, and its settings in the order of the file."""

    name: str
    entries: tuple[RawEntry, ...]


class _Returned(Exception):
    """Raised where a function returns."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Raised(Exception):
    """Raised where a recipe raises."""


def recipes_in(text: str, file: str) -> tuple[PythonRecipe, ...]:
    """Return the configurations of a Python file.

    Raises FormatError for text that is not Python.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f" in line {line}" if line else ""
        raise FormatError(f"{file} is not valid Python{where}") from None
    reader = _RecipeReader(file, text.split("\n"))
    try:
        return tuple(reader.read(tree))
    except RecursionError:
        raise FormatError(f"{file} is nested too deeply") from None


class _RecipeReader(Expressions):
    def __init__(self, file: str, lines: list[str]) -> None:
        self._file = file
        self._lines = lines
        self._made: dict[str, list[RawEntry]] = {}
        self._names: dict[str, Any] = {}
        self._steps = 0
        self._depth = 0
        self._entries: list[RawEntry] = []
        self._site: SettingPlace | None = None

    def read(self, tree: ast.Module) -> Iterator[PythonRecipe]:
        """Yield the configurations of a module: functions and objects with enough known settings."""
        module = FunctionScope(self._names)
        self._names |= {
            node.name: LocalFunction(node)
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        loose: list[RawEntry] = []
        for node in tree.body:
            self._entries = []
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if not node.name.startswith("_"):
                    entries = self._of_function(node)
                    if _settings_in(entries) >= _FEWEST:
                        yield PythonRecipe(node.name, tuple(entries))
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                yield from self._of_object(node, module)
                loose += self._entries
            elif isinstance(node, ast.Expr | ast.Assert):
                self._run([node], module)
                loose += self._entries
        if _settings_in(loose) >= _FEWEST:
            yield PythonRecipe("", tuple(loose))

    def spend(self) -> None:
        """Count a step. Raises FormatError for a file that takes too many."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise FormatError(f"{self._file} takes more than {_MOST_STEPS:,} steps to follow")

    def _of_object(self, node: ast.Assign | ast.AnnAssign, module: FunctionScope) -> Iterator[PythonRecipe]:
        """Read an assignment of the module; yield the configuration that it makes."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if isinstance(node.value, ast.Call | ast.Dict) and names:
            self._names |= dict.fromkeys(names, self.value(node.value, module))
            entries = [*self._entries, *self._of_expression(node.value, module)]
            self._entries = []
            for name in names:
                self._made[name] = entries
                if _settings_in(entries) > _FEWEST:
                    yield PythonRecipe(name, tuple(entries))
            return
        self._run([node], module)

    def _of_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[RawEntry]:
        """Return the settings of a function of the module, with its defaults."""
        self._entries = []
        scope = FunctionScope(dict(self._names))
        for name, default in _parameters(node):
            scope.names[name] = UNKNOWN if default is None else self.value(default, scope)
            if name == "num_nodes" and scope.names[name] == 1:
                # One node is what a recipe has until its caller says how many there are.
                scope.names[name] = UNKNOWN
            if default is not None and _known(name):
                self._record(name, scope.names[name], default)
        self._run(node.body, scope)
        # The name tells more than the name of a recipe that this one copies.
        return [*self._entries, *_from_name(node.name, self._file, node.lineno)]

    def call(self, function: LocalFunction, node: ast.Call, scope: FunctionScope) -> Any:
        """Return what a function of the file returns, and record what it sets."""
        if self._depth >= _DEEPEST:
            return UNKNOWN
        inner = FunctionScope(dict(self._names), attributes=scope.attributes)
        parameters = dict(_parameters(function.node))
        passed: dict[str, ast.expr] = dict(zip(parameters, node.args, strict=False))
        passed |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        unpacked = [self.value(keyword.value, scope) for keyword in node.keywords if keyword.arg is None]
        values: dict[str, Any] = dict(function.bound)
        for mapping in unpacked:
            values |= mapping if isinstance(mapping, dict) else {}
        values |= {name: self.value(argument, scope) for name, argument in passed.items()}
        for name, default in parameters.items():
            absent = UNKNOWN if default is None else self.value(default, inner)
            inner.names[name] = values.get(name, absent)
            if name in passed and inner.names[name] is UNKNOWN and (dotted := scope.dotted(passed[name])):
                inner.aliases[name] = dotted
        outer, place = self._site, SettingPlace(self._file, node.lineno, ast.unparse(node.func))
        self._site = outer or (place if inner.aliases else None)
        self._depth += 1
        try:
            return self._run(function.node.body, inner)
        finally:
            self._depth -= 1
            self._site = outer

    # Statements

    def _run(self, body: Sequence[ast.stmt], scope: FunctionScope) -> Any:
        """Follow statements; return what they return."""
        try:
            for statement in body:
                self._statement(statement, scope)
        except _Returned as returned:
            return returned.value
        except _Raised:
            if self._depth:
                raise
        return None

    def _statement(self, node: ast.stmt, scope: FunctionScope) -> None:
        self.spend()
        match node:
            case ast.Assign() | ast.AnnAssign() if node.value is not None:
                self._assignment(node, node.value, scope)
            case ast.AugAssign():
                current = self.value(node.target, scope)
                self._assign(node.target, combined(node.op, current, self.value(node.value, scope)), node.value, scope)
            case ast.Expr() | ast.Assert():
                self._claim(node, scope)
            case ast.Return():
                raise _Returned(None if node.value is None else self._expression(node.value, scope))
            case ast.Raise():
                raise _Raised
            case ast.With() | ast.AsyncWith():
                for statement in node.body:
                    self._statement(statement, scope)
            case ast.If():
                self._branch(node, scope)
            case ast.For():
                self._loop(node, scope)
            case ast.Try():
                self._attempt(node, scope)
            case ast.FunctionDef():
                scope.names[node.name] = LocalFunction(node)
            case ast.While():
                self._undecided([node], scope)

    def _expression(self, node: ast.expr, scope: FunctionScope) -> Any:
        value = self.value(node, scope)
        self._layout_builder(node, scope)
        self._entries += self._of_expression(node, scope)
        return value

    def _claim(self, node: ast.Expr | ast.Assert, scope: FunctionScope) -> None:
        """Follow an expression, or record what an assertion says: ``assert cfg.model.num_layers == 80``."""
        match node:
            case ast.Expr():
                self._expression(node.value, scope)
            case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
                if _known(key := scope.dotted(left)):
                    self._record(key, self.value(right, scope), right)

    def _assignment(self, node: ast.Assign | ast.AnnAssign, right: ast.expr, scope: FunctionScope) -> None:
        value = self.value(right, scope)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self._assign(target, value, right, scope)
        self._entries += self._of_expression(right, scope)

    def _branch(self, node: ast.If, scope: FunctionScope) -> None:
        decides = truth(self.value(node.test, scope))
        if decides is UNKNOWN:
            # Which branch runs is unknown: its settings are, too.
            self._undecided([*node.body, *node.orelse], scope)
            return
        for statement in node.body if decides else node.orelse:
            self._statement(statement, scope)

    def _loop(self, node: ast.For, scope: FunctionScope) -> None:
        values = self.value(node.iter, scope)
        if not isinstance(values, list | tuple) or len(values) > _MOST_ROUNDS:
            self._undecided(node.body, scope)
            return
        for value in values:
            self._assign(node.target, value, node.iter, scope)
            for statement in node.body:
                self._statement(statement, scope)

    def _attempt(self, node: ast.Try, scope: FunctionScope) -> None:
        try:
            for statement in node.body:
                self._statement(statement, scope)
        except _Raised:
            for statement in node.handlers[0].body if node.handlers else ():
                self._statement(statement, scope)
        for statement in node.finalbody:
            self._statement(statement, scope)

    def _undecided(self, body: Sequence[ast.stmt], scope: FunctionScope) -> None:
        """Mark what statements may set as unknown."""
        for statement in body:
            for inner in ast.walk(statement):
                if isinstance(inner, ast.Assign):
                    for target in inner.targets:
                        self._assign(target, UNKNOWN, inner.value, scope)
                elif isinstance(inner, ast.Call):
                    self._layout_builder(inner, scope)

    def _layout_builder(self, node: ast.expr, scope: FunctionScope) -> None:
        """Mark the layout as unknown after a call that sets it, such as ``set_..._layout(cfg.model)``, from another file."""
        if not isinstance(node, ast.Call) or "layout" not in ast.unparse(node.func).lower():
            return
        if not (isinstance(node.func, ast.Name) and isinstance(scope.names.get(node.func.id), LocalFunction)):
            self._record("pipeline_model_parallel_layout", UNKNOWN, node)

    def _assign(self, target: ast.expr, value: Any, node: ast.expr, scope: FunctionScope) -> None:
        if isinstance(target, ast.Name):
            scope.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value if isinstance(value, list | tuple) and len(value) == len(target.elts) else None
            for place, part in enumerate(target.elts):
                self._assign(part, UNKNOWN if parts is None else parts[place], node, scope)
        elif key := scope.dotted(target):
            scope.attributes[key] = value
            if _known(key):
                self._record(key, value, node)
            if key.endswith(("model", "hf_path", "pretrained_model_name_or_path")):
                self._entries += self._model_of(node, value)

    # Settings

    def _of_expression(self, node: ast.expr, scope: FunctionScope) -> list[RawEntry]:
        """Return the settings among the keyword arguments and dictionary keys of an expression, outer calls last."""
        entries: list[RawEntry] = []
        if isinstance(node, ast.Call):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                if isinstance(argument, ast.Call | ast.Dict):
                    entries += self._of_expression(argument, scope)
                elif isinstance(argument, ast.Name) and argument.id in self._made:
                    entries += self._made[argument.id]
            entries += self._model_of(node, None)
            mode = next((mode for name, mode in _CHECKPOINTING.items() if name in ast.unparse(node.func)), None)
            if mode is not None:
                entries.append(self._entry("activation_checkpoint.mode", mode, node.func))
            for keyword in node.keywords:
                if keyword.arg and not isinstance(keyword.value, ast.Call | ast.Dict) and _known(keyword.arg):
                    entries.append(self._entry(keyword.arg, self.value(keyword.value, scope), keyword.value))
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(value, ast.Call | ast.Dict):
                    entries += self._of_expression(value, scope)
                elif isinstance(key, ast.Constant) and isinstance(key.value, str) and _known(key.value):
                    entries.append(self._entry(key.value, self.value(value, scope), value))
        return entries

    def _model_of(self, node: ast.expr, value: Any) -> list[RawEntry]:
        """Return the model that a call loads by its name on a hub: ``AutoBridge.from_hf_pretrained("zai-org/GLM-4.5")``."""
        if isinstance(value, str) and _HUB_NAME.fullmatch(value):
            return [self._entry("model_name", value.rpartition("/")[2], node)]
        if not isinstance(node, ast.Call):
            return []
        texts = [inner for inner in ast.walk(node) if isinstance(inner, ast.Constant) and isinstance(inner.value, str)]
        named = next((text for text in texts if _HUB_NAME.fullmatch(str(text.value))), None)
        return [] if named is None else [self._entry("model_name", str(named.value).rpartition("/")[2], named)]

    def _record(self, key: str, value: Any, node: ast.expr) -> None:
        """Record a setting; a value that only passes through a parameter keeps the place where it was written."""
        entry = self._entry(key, value, node)
        if isinstance(node, ast.Name):
            last = next(
                (one for one in reversed(self._entries[-_NEAR:]) if setting_of(one.key) is setting_of(key)), None
            )
            if last is not None and last.raw == value:
                entry = replace(entry, place=last.place)
        self._entries.append(entry)

    def _entry(self, key: str, value: Any, node: ast.expr) -> RawEntry:
        if self._site is not None:
            return RawEntry(key, value, replace(self._site, key=key))
        line = node.lineno
        end = node.end_col_offset if node.end_lineno == line and node.end_col_offset is not None else -1
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        # Columns of the syntax tree are bytes of UTF-8.
        start, stop = (_characters(text, node.col_offset), _characters(text, end)) if end >= 0 else (-1, -1)
        return RawEntry(key, value, SettingPlace(self._file, line, key, start, stop))


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the parameters of a function with their defaults."""
    named = [*node.args.posonlyargs, *node.args.args]
    without = len(named) - len(node.args.defaults)
    yield from ((argument.arg, None) for argument in named[:without])
    yield from ((argument.arg, default) for argument, default in zip(named[without:], node.args.defaults, strict=True))
    yield from (
        (argument.arg, default) for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    )


def _characters(text: str, byte: int) -> int:
    return len(text.encode()[:byte].decode(errors="ignore"))


_NAMED = re.compile(r"_(\d{1,6})gpus?_([a-z]+\d+[a-z]*)(?:_(bf16|fp16|fp8\w*?|mxfp8|nvfp4))?(?:_|$)")
"""Matches what Bridge's recipes say in their names: ``..._128gpu_h100_bf16_config``."""


def _from_name(name: str, file: str, line: int) -> list[RawEntry]:
    match = _NAMED.search(name)
    if match is None:
        return []
    place = replace(SettingPlace(file, line), key="the recipe's name")
    entries = [RawEntry("num_gpus", match[1], place), RawEntry("gpu_name", match[2].upper(), place)]
    return [*entries, RawEntry("precision", match[3], place)] if match[3] else entries


def _known(key: str) -> bool:
    return setting_of(key) is not None or switch_of(key) is not None or counts_tokens(key)


def _settings_in(entries: list[RawEntry]) -> int:
    """Return the number of different settings of parallel degrees, batches and layouts."""
    names = {setting.name for one in entries if (setting := setting_of(one.key)) is not None}
    return len(names & _TELLING)
