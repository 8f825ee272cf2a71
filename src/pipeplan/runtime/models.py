"""The models that can be trained: built in, or loaded by name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, cast

from pipeplan.costs import ModelOptions
from pipeplan.errors import InputError, UnknownNameError
from pipeplan.model import require_text, shortened
from pipeplan.runtime.model import USERS_ERRORS, Model, said
from pipeplan.runtime.transformers import GPT, LLAMA_3_8B

_TINY = GPT(blocks=8, width=64, heads=4, length=32, vocabulary=96, microbatch=2)
_SMALL = GPT(blocks=8, width=512, heads=8, length=128, vocabulary=512, microbatch=2)

BUILT_IN: dict[str, Callable[[], Model]] = {
    "gpt-tiny": lambda: _TINY.model("gpt-tiny"),
    "gpt-small": lambda: _SMALL.model("gpt-small"),
    "llama-3-8b": lambda: LLAMA_3_8B.model("llama-3-8b"),
}
"""The models that need no code of the user's: ``gpt-tiny`` trains in milliseconds; a block of ``gpt-small`` takes some 15
ms forward on one CPU thread; ``llama-3-8b`` has the shape of Llama 3's 8 billion parameters, in bfloat16."""


def load_model(name: str, *, dtype: str | None = None, timeout: float = 120.0) -> Model:
    """A built-in model by its name, or what ``function()`` of a module returns, by ``module:function``.

    Modules are looked for in the current folder too. What they print goes to stderr: stdout is for the answer.

    Parameters
    ----------
    dtype
        Of the parameters, instead of the model's own.
    timeout
        Seconds that the import and the function may take.

    Raises
    ------
    UnknownNameError
        For a name that is not built in, or a function that the module does not have.
    InputError
        If the module cannot be imported, or the function raises, ends the process, does not return in time or does not
        return a :class:`Model`.
    """
    if dtype not in (None, "float32", "bfloat16"):
        raise InputError(f"a model's dtype is float32 or bfloat16, not {dtype}")
    require_text(name, "the model's name", field="model")
    model = in_time(lambda: _called(name), timeout, name) if ":" in name else _built_in(name)
    return model if dtype is None else replace(model, dtype=dtype)


def model_for(options: ModelOptions) -> Model:
    """The model that options name, or the one that they hold. Raises what :func:`load_model` does."""
    if isinstance(options.model, str):
        return load_model(options.model, dtype=options.dtype, timeout=options.timeout)
    return cast("Model", options.model)


def _built_in(name: str) -> Model:
    if name not in BUILT_IN:
        raise UnknownNameError("model", name, [*BUILT_IN, "module:function"])
    return BUILT_IN[name]()


def _called(name: str) -> Model:
    module_name, _, function_name = name.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), function_name)):
        raise InputError(f"a model of your own is module:function, not '{shortened(name, 60)}'", field="model")
    module = _imported(module_name)
    function = getattr(module, function_name, None)
    if not callable(function):
        known = [known for known, value in vars(module).items() if callable(value) and known.isidentifier()]
        raise UnknownNameError(f"function of module {module_name}", function_name, known)
    try:
        model = function()
    except USERS_ERRORS as error:
        raise InputError(f"model function {name} raised {said(error)}") from error
    if not isinstance(model, Model):
        raise InputError(f"model function {name} returned {_a(model)}, not a pipeplan.runtime.Model")
    return model


def _a(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def in_time(load: Callable[[], Model], timeout: float, name: str) -> Model:
    """Return what a user's function gives, called in a thread of its own: one that never returns ends with this process.

    Raises
    ------
    InputError
        If it has not returned in so many seconds; and whatever it raises.
    """
    answers: Queue[Model | BaseException] = Queue()

    def work() -> None:
        try:
            answers.put(load())
        except BaseException as error:
            answers.put(error)

    with redirect_stdout(sys.stderr):
        Thread(target=work, daemon=True, name="the model's function").start()
        try:
            answer = answers.get(timeout=timeout)
        except Empty:
            raise InputError(
                f"model function {name} did not return within {timeout:g} s; give it more time with timeout",
                field="timeout",
            ) from None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _imported(name: str) -> Any:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except USERS_ERRORS as error:
        raise InputError(f"cannot import the model's module '{name}': {said(error)}") from error
