"""Python recipes: functions and objects that set options, by their syntax tree. Nothing is imported or executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipeplan.extensions.review.facts import SettingPlace
from pipeplan.extensions.review.keys import setting_of
from pipeplan.extensions.review.readers.recipe_files import bound_by, parsed
from pipeplan.extensions.review.readers.recipe_names import named_by
from pipeplan.extensions.review.readers.recipe_reader import RecipeFunction, RecipeReader, RecipeScope, parameters_of
from pipeplan.extensions.review.readers.recipe_values import External, Made, Stated
from pipeplan.extensions.review.settings import UNKNOWN
from pipeplan.extensions.review.stated import RawEntry, ReadSettings, counts_tokens, is_known
from pipeplan.extensions.review.values import value_of
from pipeplan.foundation.errors import FormatError

_TELLING = frozenset(
    {"tp", "pp", "cp", "ep", "vpp", "micro_batch", "global_batch", "local_batch", "layout", "dp_shard", "schedule"}
    | {"seq_length", "modules_per_part", "microbatches"}
)
"""Settings of parallel training, by which a configuration is told from other code."""

_FEWEST = 2
"""Minimum number of known settings that make a function or an object a configuration."""

_PARTS = ("model", "model_spec", "parallelism", "train", "training", "ddp", "strategy")
"""Parts of a configuration that decide whether all of its settings of parallel training are known."""


def recipes_in(text: str, file: str, folder: Path | None = None) -> tuple[ReadSettings, ...]:
    """Return the configurations of a Python file: its functions and objects with enough known settings.

    Parameters
    ----------
    folder
        Folder of the file: helpers that it imports are read from files beside it and in the packages above it. None: no
        other file is read.

    Raises
    ------
    FormatError
        If the text is not Python, or too large to follow.
    """
    module = parsed(text, file, None if folder is None else folder.absolute())
    if not _mentions(text, _FEWEST):
        return ()
    reader = RecipeReader(module)
    try:
        return (*_of_module(reader), *_of_functions(reader))
    except RecursionError:
        raise FormatError(f"{file} is nested too deeply") from None


_SET = re.compile(r"(\w+)(?:[\"']\]?)?\s*[=:](?!=)")
"""Matches a name that a recipe sets: an attribute, a keyword, a key of a dictionary, a parameter with its default."""


def _mentions(text: str, fewest: int) -> bool:
    """Return whether a text sets so many settings of parallel training: only what does is followed."""
    count = 0
    for match in _SET.finditer(text):
        count += _is_telling(match[1])
        if count >= fewest:
            return True
    return False


@lru_cache(maxsize=10_000)
def _is_telling(key: str) -> bool:
    setting = setting_of(key)
    return (setting is not None and setting.name in _TELLING) or counts_tokens(key)


def _of_module(reader: RecipeReader) -> Iterator[ReadSettings]:
    """Yield the objects that a module makes, and what is left of it as one configuration."""
    scope = RecipeScope(reader.module, reader.module.names)
    names: list[str] = []
    for node in reader.module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr | ast.Assert):
            reader.run([node], scope)
            names += bound_by(node)
    for name in dict.fromkeys(names):
        if isinstance(made := scope.names[name].raw, Made):
            yield from _configuration(name, [made], _FEWEST + 1)
    yield from _configuration("", [made for made in scope.made if made.callee != "dict"], _FEWEST)


def _of_functions(reader: RecipeReader) -> Iterator[ReadSettings]:
    """Yield what each function of a module returns, or sets if it returns nothing."""
    for node in reader.module.tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        scope = RecipeScope(reader.module, {})
        parameters = Made("parameters")
        for name, default in parameters_of(node):
            value = Stated(UNKNOWN) if default is None else reader.stated(default, RecipeScope(reader.module, {}))
            # One node is what a recipe has until its caller says how many there are.
            scope.names[name] = value._replace(raw=UNKNOWN) if name == "num_nodes" and value.raw == 1 else value
            if default is not None:
                parameters.set(name, scope.names[name], 0)
        if node.args.kwarg is not None:
            scope.names[node.args.kwarg.arg] = Stated(Made("dict"))
        reader.run(node.body, scope)
        returned = scope.result.raw
        kept = list({id(one.raw): one.raw for one in scope.names.values() if isinstance(one.raw, Made)}.values())
        main = [made for made in kept if any(part in made for part in _PARTS)]
        roots = [returned] if isinstance(returned, Made) else main if len(main) == 1 else [*scope.made, *kept]
        named = _from_name(node.name, reader.module.file, node.lineno)
        yield from _configuration(node.name, [parameters, *roots], _FEWEST, named)


def _configuration(name: str, roots: list[Made], fewest: int, named: Sequence[RawEntry] = ()) -> Iterator[ReadSettings]:
    """Yield the configuration that objects hold, if they hold enough settings."""
    timed: list[tuple[int, RawEntry]] = []
    seen: set[int] = set()
    whole = [_flatten(root, (), 0, timed, seen) for root in roots]
    # The name tells more than the name of a recipe that this one copies.
    entries = [*(entry for _, entry in sorted(timed, key=lambda pair: pair[0])), *named]
    if _telling(entries) >= fewest:
        yield ReadSettings(entries=tuple(entries), name=name, whole=len(roots) <= 2 and all(whole))


def _flatten(made: Made, path: tuple[str, ...], time: int, timed: list[tuple[int, RawEntry]], seen: set[int]) -> bool:
    """Add the settings of an object and its parts; return whether it can have no others."""
    if id(made) in seen:
        return not made.open
    seen.add(id(made))
    timed += [(time, entry) for entry in named_by(made, path)]
    whole = not made.open
    for key, (raw, place, since) in made.fields.items():
        inner = path if isinstance(key, int) else (*path, str(key))
        for part in raw if isinstance(raw, list | tuple) else [raw]:
            if isinstance(part, Made):
                whole &= _flatten(part, inner, since, timed, seen) or bool(path) or key not in _PARTS
        whole &= raw is not UNKNOWN or key not in _PARTS or bool(path)
        # What a function returns that is not read is unknown: os.path.join(...).
        unread = isinstance(raw, Made) and raw.open and all(isinstance(one, int) for one in raw.fields)
        if (unread or not isinstance(raw, Made)) and not isinstance(key, int) and is_known(name := ".".join(inner)):
            value = (
                raw.name.removeprefix("torch.") if isinstance(raw, External) and raw.name.startswith("torch.") else raw
            )
            value = UNKNOWN if isinstance(value, External | RecipeFunction | Made) else value
            # A tokenizer's vocabulary is the model's where the model has none of its own.
            moment = 0 if inner[0] == "tokenizer" else since
            timed.append((moment, RawEntry(name, value, replace(place, key=name))))
    return whole


_NAMED = re.compile(r"_(\d{1,6})gpus?_([a-z]+\d+[a-z]*)(?:_(bf16|fp16|fp8\w*?|mxfp8|nvfp4))?(?:_|$)")
"""Matches what Bridge's recipes say in their names: ``..._128gpu_h100_bf16_config``."""


def _from_name(name: str, file: str, line: int) -> list[RawEntry]:
    match = _NAMED.search(name)
    if match is None:
        return []
    place = SettingPlace(file, line, "the recipe's name")
    entries = [RawEntry("num_gpus", match[1], place), RawEntry("gpu_name", match[2].upper(), place)]
    return [*entries, RawEntry("precision", match[3], place)] if match[3] else entries


def _telling(entries: list[RawEntry]) -> int:
    """Return the number of different settings of parallel degrees, batches and layouts; 0 if no value of them is known."""
    values: dict[str, Any] = {}
    for one in entries:
        if (setting := setting_of(one.key)) is not None and setting.name in _TELLING:
            values[setting.name] = None if one.raw is None else value_of(setting, one.raw)
        if counts_tokens(one.key):
            values["tokens"] = one.raw
    return len(values) if any(value is not UNKNOWN for value in values.values()) else 0
