"""Tools of an agent: functions of the public API with short schemas and short answers."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pipeplan
from pipeplan.answers import AllowOptions, named_beside
from pipeplan.answers.answers import AnswerRecord
from pipeplan.cli.answers import sentence
from pipeplan.costs import (
    ALIASES,
    SETTINGS,
    ConfiguredSettings,
    Options,
    Setting,
    SettingKind,
    missing_in,
    options_of,
    table_of,
)
from pipeplan.foundation.errors import InputError, PipeplanError, UnknownNameError
from pipeplan.foundation.extensions import extension
from pipeplan.foundation.files import path_of, require_apart
from pipeplan.model import shortened

Json = dict[str, Any]

_SHAPE = "config ranks microbatches chunks forward_times backward_times p2p_time memory_limit activation_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Function of the public API as a tool.

    Attributes
    ----------
    function
        Function that takes schedules or files by position, and options by keyword.
    about
        What the tool does, in a clause.
    writes
        What its ``output`` can be, in a clause.
    names
        JSON schema of the argument with schedules or files, by its name; empty if there is none.
    options
        Record of the function's own options.
    settings
        Record of its settings of shape and costs, or None.
    listed
        Options in the schema; a call may have all others, too.
    progress
        Description of how far the function is, if it takes ``progress``.
    """

    function: Callable[..., AnswerRecord]
    about: str
    writes: str = 'output=["answer.json"] writes it'
    names: Mapping[str, Json]
    options: type[Options] = Options
    settings: type[Options] | None = ConfiguredSettings
    listed: str
    progress: Callable[[Any], str] | None = None

    @property
    def schema(self) -> Json:
        """JSON schema of the arguments of a call."""
        listed, own = self.listed.split(), table_of(self.options)
        table = {**own, **({} if self.settings is None else table_of(self.settings))}
        others = [name for name in own if name not in listed]
        if self.settings is not None:
            simulate = self.function is pipeplan.simulate
            others += [name for name in SETTINGS if name not in listed] if simulate else ["all that simulate takes"]
        properties = {**self.names, **{name: _form_of(table[name]) for name in listed}, **_OWN}
        if others:
            properties["settings"] = {"type": "object", "description": f"Further options by name: {', '.join(others)}."}
        return {"type": "object", "properties": properties, "required": missing_in(self.options, {})}

    @property
    def description(self) -> str:
        """Description of the tool in a sentence."""
        return f"{self.about}; {self.writes}."

    @property
    def arguments(self) -> list[str]:
        """Names of all arguments that a call, or its ``settings``, may have."""
        settings = {} if self.settings is None else table_of(self.settings)
        aliases = [alias for alias, name in ALIASES.items() if name in settings]
        options = [name for name in settings if name != "settings"]
        return [*self.names, *table_of(self.options), *options, *aliases, *_OWN]


def _form_of(setting: Setting) -> Json:
    """Return the JSON schema of an option, with the first clause of its help."""
    form = _SIZES if setting.in_bytes else _FORMS.get(setting.kind, _TEXT)
    choices = {"enum": list(setting.choices)} if setting.kind == "choice" else {}
    clause = re.split(r"; |\. |\.$", setting.help, maxsplit=1)[0]
    return {**form, **choices, "description": clause + (f" (default: {setting.default})" if setting.default else "")}


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_NUMBER: Json = {"type": "number"}
_TEXT: Json = {"type": "string"}
_TEXTS: Json = {"type": "array", "items": _TEXT}
_SIZES: Json = {"type": ["number", "string", "array"], "items": {"type": ["number", "string"]}}
_TEXT_OR_OBJECT: Json = {"type": ["string", "object"]}

_FORMS: dict[SettingKind, Json] = {
    "count": {"type": "integer"},
    "number": _NUMBER,
    "flag": {"type": "boolean"},
    "per_stage": {"type": ["number", "array"], "items": _NUMBER},
    "pair_times": {"type": ["number", "array"]},
    "segments": {"type": ["array", "object"], "items": {"type": "object"}},
    "limit": _SIZES,
    "size": {"type": ["number", "string"]},
    "names": _TEXTS,
    "object": _TEXT_OR_OBJECT,
    "model": _TEXT_OR_OBJECT,
    "pairs": {"type": "object"},
}
"""JSON schemas of the kinds of options that tools list; all other kinds are texts."""

_OWN: dict[str, Json] = {
    "output": _TEXTS | {"description": "Files to write; the suffix selects the content: .csv .json .png .html"},
    "detail": {"type": "boolean", "description": "Return the whole record, with every row and rank"},
}
"""Arguments of every tool."""

_SCHEDULE = _TEXT | {"description": "Name or file of a schedule (default: 1f1b)"}

TOOLS: dict[str, Tool] = {
    "compare": Tool(
        function=pipeplan.compare,
        about="Compare published schedules of pipeline parallelism on the same costs, the fastest that fits first",
        names={"schedules": _TEXTS | {"description": "Names or files of schedules (default: all published)"}},
        options=AllowOptions,
        listed=f"allow {_SHAPE}",
    ),
    "simulate": Tool(
        function=pipeplan.simulate,
        about="Simulate one schedule: step time, bubble, peak memory and the gap to a lower bound",
        writes='output=["order.csv"] writes its order',
        names={"schedule": _SCHEDULE},
        listed=_SHAPE,
    ),
    "explain": Tool(
        function=pipeplan.explain,
        about="Explain why the ranks of a schedule, or of a folder with the traces of a run, idle and what would help",
        names={"schedule": _SCHEDULE},
        options=AllowOptions,
        listed=f"allow {_SHAPE}",
    ),
}
"""Tools by name, with those of the extensions that are installed."""

if extension("search"):
    from pipeplan.extensions.search.answers.options import SearchOptions
    from pipeplan.extensions.search.commands import progress_text as search_progress

    TOOLS["search"] = Tool(
        function=pipeplan.search,
        about="Search for a faster schedule under a memory limit",
        writes='output=["best.csv"] writes its order',
        names={},
        options=SearchOptions,
        listed=f"placement seconds allow {_SHAPE}",
        progress=lambda progress: search_progress(progress, ""),
    )
if extension("planning"):
    from pipeplan.extensions.planning.answers.options import PlanOptions
    from pipeplan.extensions.planning.answers.planned import planned
    from pipeplan.extensions.planning.commands import progress_text as plan_progress

    TOOLS["plan"] = Tool(
        function=lambda progress=None, **options: planned(options_of(PlanOptions, options), progress=progress),
        about="Choose the configuration to train a model with on a cluster",
        writes='output=["best.yaml"] writes it, ["best.sh"] the flags of its trainer',
        names={},
        options=PlanOptions,
        settings=None,
        listed="model cluster global_batch sequence fix objective memory_limit allow seconds",
        progress=plan_progress,
    )
if extension("review"):
    from pipeplan.extensions.review.answers.review import ReviewOptions

    TOOLS["review"] = Tool(
        function=pipeplan.review,
        about="Review a trainer's launch script or recipe: does it start, is it right, where does it lose, what to change",
        writes='output=["fix.patch"] writes the patch',
        names={
            "files": {
                "type": "array",
                "items": _TEXT_OR_OBJECT,
                "description": "Files with arguments, a recipe or a layout; or folders",
            }
        },
        options=ReviewOptions,
        settings=None,
        listed="trainer trainer_version model cluster global_batch sequence trace",
    )


def answer_of(name: str, call: Mapping[str, Any], seconds: float, progress_file: Path | None = None) -> Json | str:
    """Return the answer of a tool as JSON, or the message of its error.

    After so many seconds, a search or a plan ends with its best result so far, as with Ctrl-C. A process answers one call
    at a time. ``progress_file`` receives how far it is, as a share and a description.
    """
    tool = TOOLS[name]
    try:
        values = _values_of(tool, call)
        outputs = [path_of(output, "the output", field="output") for output in _list_of(values.pop("output", []))]
        if (detail := values.pop("detail", False)) not in (True, False):
            raise InputError(f"detail must be true or false, not {shortened(repr(detail), 60)}", field="detail")
        texts = [text for value in values.values() for text in _list_of(value) if isinstance(text, str)]
        beside = [path for output in outputs if tool.settings is not None for path in named_beside(output)]
        require_apart([*outputs, *beside], [Path(text) for text in texts if os.path.exists(text)])
        names = [text for name in tool.names for text in _list_of(values.pop(name, []))]
        if tool.progress is not None and progress_file is not None:
            values["progress"] = _Reporter(progress_file, tool.progress)
        with _interrupted_after(seconds):
            answer = tool.function(*names, **values)
        document = answer.to_dict() if detail else answer.summary()
        written = {"written": [_saved(answer, output) for output in outputs]} if outputs else {}
        if not detail:
            missing = document.pop("not_shown", "further figures")
            document["not_shown"] = f"{missing}; detail=true returns all, {tool.writes}"
        return document | written
    except KeyboardInterrupt:
        return f"no answer within {seconds:g} s: try a smaller request, or a longer limit: pipeplan mcp --seconds"
    except Exception as error:
        return " ".join(sentence(error, ()).removeprefix("pipeplan: ").split())


class _Reporter:
    """Writer of the progress of a call to a file, which another process reads."""

    def __init__(self, path: Path, words: Callable[[Any], str]) -> None:
        self._path, self._words = path, words
        self._next = 0.0

    def __call__(self, progress: Any) -> None:
        """Write the share that is done and a description, at most once in :data:`EVERY` seconds."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps([progress.share, self._words(progress)]), encoding="utf-8")
        fresh.replace(self._path)  # the reader never finds half of it


EVERY = 1.0
"""Minimum number of seconds between two reports of progress."""


def _values_of(tool: Tool, call: Mapping[str, Any]) -> Json:
    """Return the arguments of a call and those in its ``settings``, except those that are null.

    Raises UnknownNameError for the name of no argument, and InputError for several values of an argument that takes one.
    """
    settings = call.get("settings") or {}
    if not isinstance(settings, dict):
        raise InputError("settings must be an object with options by name", field="settings")
    values = {name: value for name, value in call.items() if name != "settings" and value is not None}
    for name, value in settings.items():
        if values.setdefault(name, value) != value:
            raise InputError(f"{name} has two values, one of them in settings: set it once", field=name)
    for name, value in values.items():
        if name not in tool.arguments:
            raise UnknownNameError("argument", name, tool.arguments, field=name)
        if name in tool.names and tool.names[name]["type"] != "array" and isinstance(value, list):
            raise InputError(f"{name} takes one name or file, not {len(value)}; compare takes several", field=name)
    return {name: value for name, value in values.items() if value is not None}


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt in the block after so many seconds, except on Windows."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _saved(answer: AnswerRecord, path: Path) -> str:
    """Write an answer to a file, and return the names of the files, or why they are not written."""
    try:
        return ", ".join(map(str, answer.save(path)))
    except PipeplanError as error:
        return f"not written: {error}"
