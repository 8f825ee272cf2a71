"""The models that can be trained: built in, or loaded by name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeplan.errors import InputError, UnknownNameError
from pipeplan.runtime.gpt import GPT
from pipeplan.runtime.llama import LLAMA_3_8B
from pipeplan.runtime.model import Model, said

_TINY = GPT(blocks=8, width=64, heads=4, length=32, vocabulary=96, microbatch=2)
_SMALL = GPT(blocks=8, width=512, heads=8, length=128, vocabulary=512, microbatch=2)

BUILT_IN: dict[str, Callable[[], Model]] = {
    "gpt-tiny": lambda: _TINY.model("gpt-tiny"),
    "gpt-small": lambda: _SMALL.model("gpt-small"),
    "llama-3-8b": lambda: LLAMA_3_8B.model("llama-3-8b"),
}
"""The models that need no code of the user's: ``gpt-tiny`` trains in milliseconds; a block of ``gpt-small`` takes some 15
ms forward on one CPU thread; ``llama-3-8b`` has the shape of Llama 3's 8 billion parameters, in bfloat16."""


def load_model(name: str, *, dtype: str | None = None) -> Model:
    """A built-in model by its name, or what ``function()`` of a module returns, by ``module:function``.

    Modules are looked for in the current folder too.

    Raises
    ------
    UnknownNameError
        For a name that is not built in, or a function that the module does not have.
    InputError
        If the module cannot be imported, or the function raises or does not return a :class:`Model`.
    """
    if dtype not in (None, "float32", "bfloat16"):
        raise InputError(f"a model's dtype is float32 or bfloat16, not {dtype}")
    model = _called(name) if ":" in name else _built_in(name)
    return model if dtype is None else replace(model, dtype=dtype)


def _built_in(name: str) -> Model:
    if name not in BUILT_IN:
        raise UnknownNameError("model", name, [*BUILT_IN, "module:function"])
    return BUILT_IN[name]()


def _called(name: str) -> Model:
    module_name, _, function_name = name.partition(":")
    module = _imported(module_name)
    function = getattr(module, function_name, None)
    if not callable(function):
        known = [known for known, value in vars(module).items() if callable(value)]
        raise UnknownNameError(f"function of module {module_name}", function_name, known)
    try:
        model = function()
    except Exception as error:
        raise InputError(f"model function {name} raised {said(error)}") from error
    if not isinstance(model, Model):
        raise InputError(f"model function {name} returned a {type(model).__name__}, not a pipeplan.runtime.Model")
    return model


def _imported(name: str) -> Any:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise InputError(f"cannot import the model's module '{name}': {said(error)}") from error
