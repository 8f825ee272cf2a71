"""Tools of an agent: functions of the public API with short schemas and short answers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pipeplan
from pipeplan.answers import AllowOptions, named_beside
from pipeplan.cli.answers import Answer, sentence
from pipeplan.costs import SETTINGS, ConfiguredSettings, Options, Setting, SettingKind, missing_in, options_of, table_of
from pipeplan.foundation.errors import InputError, PipeplanError
from pipeplan.foundation.extensions import extension
from pipeplan.foundation.files import path_of, require_apart

Json = dict[str, Any]

_SHAPE = "config ranks microbatches chunks forward_times backward_times p2p_time memory_limit activation_bytes"
_FIGURES = """schedule ranks chunks microbatches needs time_unit makespan bubble.idle_over_total peak_activation peak_bytes
fits over lower_bound gap warnings notes"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Function of the public API as a tool.

    Attributes
    ----------
    function
        Function that takes schedules or files by position, and options by keyword.
    about
        Description of the tool.
    names
        JSON schema of the argument with schedules or files, by its name; empty if there is none.
    options
        Record of the function's own options.
    settings
        Record of its settings of shape and costs, or None.
    listed
        Options in the schema; a call may have all others as ``settings``.
    short
        Paths of the parts of a short answer.
    headline
        Returns the first sentence of an answer.
    """

    function: Callable[..., Answer]
    about: str
    names: Mapping[str, Json]
    options: type[Options] = Options
    settings: type[Options] | None = ConfiguredSettings
    listed: str
    short: str
    headline: Callable[[Any], str] = lambda answer: repr(answer).strip("<>")

    @property
    def schema(self) -> Json:
        """JSON schema of the arguments of a call."""
        listed, own = self.listed.split(), table_of(self.options)
        table = {**own, **({} if self.settings is None else table_of(self.settings))}
        others = [name for name in own if name not in listed]
        if self.settings is not None:
            simulate = self.function is pipeplan.simulate
            others += [name for name in SETTINGS if name not in listed] if simulate else ["all that simulate takes"]
        properties = {**self.names, **{name: _form_of(table[name]) for name in listed}}
        properties["settings"] = {"type": "object", "description": f"Other options by name: {', '.join(others)}."}
        return {"type": "object", "properties": properties | _OWN, "required": missing_in(self.options, {})}


def _form_of(setting: Setting) -> Json:
    """Return the JSON schema of an option."""
    form = _SIZE if setting.in_bytes else _FORMS.get(setting.kind, _TEXT)
    choices = {"enum": list(setting.choices)} if setting.kind == "choice" else {}
    return {**form, **choices, "description": setting.full_help}


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_NUMBER: Json = {"type": "number"}
_TEXT: Json = {"type": "string"}
_TEXTS: Json = {"type": "array", "items": _TEXT}
_SIZE: Json = {"type": ["number", "string"]}

_FORMS: dict[SettingKind, Json] = {
    "count": {"type": "integer"},
    "number": _NUMBER,
    "flag": {"type": "boolean"},
    "per_stage": {"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER}]},
    "limit": _SIZE,
    "size": _SIZE,
    "names": _TEXTS,
    "pairs": {"type": "object"},
}
"""JSON schemas of the kinds of options that tools list; all other kinds are texts."""

_OWN: dict[str, Json] = {
    "output": _TEXTS | {"description": "Files to write; the suffix selects the content, such as .csv, .png or .json."},
    "details": {"type": "boolean", "description": "Return the whole answer, with the values of every rank."},
}
"""Arguments of every tool."""

_SCHEDULE = {"schedule": _TEXT | {"description": "Name or file of a schedule (default: 1f1b)."}}

TOOLS: dict[str, Tool] = {
    "compare": Tool(
        function=pipeplan.compare,
        about="Compare schedules of pipeline parallelism on the same ranks, microbatches and costs, the fastest first.",
        names={"schedules": _TEXTS | {"description": "Names or files of schedules (default: every published one)."}},
        options=AllowOptions,
        listed=f"allow {_SHAPE}",
        short="""results.schedule results.makespan results.bubble.idle_over_total results.peak_activation results.peak_bytes
        results.fits results.gap results.needs faster_with_more least_bound.value warnings notes""",
        headline=lambda comparison: comparison.headline,
    ),
    "simulate": Tool(
        function=pipeplan.simulate,
        about="Simulate one schedule: step time, bubble, peak memory, and the distance to a lower bound.",
        names=_SCHEDULE,
        listed=_SHAPE,
        short=_FIGURES,
    ),
    "explain": Tool(
        function=pipeplan.explain,
        about="Explain why the ranks of a schedule, or of the traces of a run, idle, and what would help.",
        names=_SCHEDULE,
        options=AllowOptions,
        listed=f"allow {_SHAPE}",
        short=f"""{_FIGURES} explain.sentences explain.advice explain.what_ifs.change explain.what_ifs.makespan
        explain.what_ifs.per_microbatch explain.what_ifs.helps explain.faster_with_more""",
        headline=lambda explanation: explanation.sentences[0],
    ),
}
"""Tools by name, with those of the extensions that are installed."""

if extension("search"):
    from pipeplan.extensions.search.answers.options import SearchOptions

    TOOLS["search"] = Tool(
        function=pipeplan.search,
        about="Search for a better schedule under a memory limit. `output` writes it to a file, such as best.csv.",
        names={},
        options=SearchOptions,
        listed=f"placement seconds allow {_SHAPE}",
        short=f"""{_FIGURES} found_by optimal interrupted seconds best_published gain best_published_anywhere
        gain_anywhere faster_with_more""",
    )
if extension("planning"):
    from pipeplan.extensions.planning.answers.options import PlanOptions
    from pipeplan.extensions.planning.answers.planned import planned

    TOOLS["plan"] = Tool(
        function=lambda **options: planned(options_of(PlanOptions, options)),
        about="Choose the configuration to train a model with on a cluster: degrees, schedule, layout, recomputation. "
        "`output` writes it (best.yaml), or the flags of its trainer (best.sh).",
        names={},
        options=PlanOptions,
        settings=None,
        listed="model cluster global_batch sequence fix objective memory_limit allow seconds",
        short="""trainer miss memory_limit_gib best.words best.layout best.recompute best.step_time_s best.peak_memory_gib
        best.mfu best.tokens_per_s best.document assumptions runners_up.words runners_up.step_time_s runners_up.lost_because
        closest_miss complete optimality_gap totals remarks""",
        headline=lambda plan: plan.headline,
    )
if extension("review"):
    from pipeplan.extensions.review.answers.review import ReviewOptions

    TOOLS["review"] = Tool(
        function=pipeplan.review,
        about="Review a configuration of a trainer: does it start, is it right, where does it lose, what to change.",
        names={
            "files": _TEXTS | {"description": "Files with a trainer's arguments, a recipe or a layout; or folders."}
        },
        options=ReviewOptions,
        settings=None,
        listed="trainer trainer_version model cluster global_batch sequence trace",
        short="""verdict findings.severity findings.rule findings.where findings.message findings.remedy questions.question
        questions.judged questions.not_judged questions.missing.sentence patch step_time_s peak_memory_gib comparison
        configurations.unknown configurations.not_read
        configurations.name configurations.file configurations.trainer configurations.fit
        configurations.bubble configurations.assumed configurations.not_estimated configurations.changes.settings
        configurations.changes.removes configurations.changes.gain configurations.changes.step_time_s
        run.step_time_s run.predicted run.sentences""",
    )


def answer_of(name: str, call: Mapping[str, Any], seconds: float) -> Json | str:
    """Return the answer of a tool as JSON, or the message of its error.

    After so many seconds, a search or a plan ends with its best result so far, as with Ctrl-C. A process answers one call
    at a time.
    """
    tool = TOOLS[name]
    try:
        values = _values_of(call)
        outputs = [path_of(output, "the output", field="output") for output in _list_of(values.pop("output", []))]
        details = values.pop("details", False)
        texts = [text for value in values.values() for text in _list_of(value) if isinstance(text, str)]
        beside = [path for output in outputs if tool.settings is not None for path in named_beside(output)]
        require_apart([*outputs, *beside], [Path(text) for text in texts if os.path.exists(text)])
        names = [text for name in tool.names for text in _list_of(values.pop(name, []))]
        with _interrupted_after(seconds):
            answer = tool.function(*names, **values)
        document = answer.to_dict()
        if not details:
            document = _parts(document, [path.split(".") for path in tool.short.split()])
        written = {"written": [_saved(answer, output) for output in outputs]} if outputs else {}
        return {"headline": tool.headline(answer), **document, **written}
    except KeyboardInterrupt:
        return f"no answer within {seconds:g} s: try a smaller request, or a longer limit: pipeplan mcp --seconds"
    except Exception as error:
        return " ".join(sentence(error, ()).removeprefix("pipeplan: ").split())


def _values_of(call: Mapping[str, Any]) -> Json:
    """Return the arguments of a call and its further settings, except those that are null."""
    settings = call.get("settings") or {}
    if not isinstance(settings, dict):
        raise InputError("settings must be an object with options by name", field="settings")
    values = {**settings, **call}
    return {name: value for name, value in values.items() if value is not None and name != "settings"}


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


def _saved(answer: Answer, path: Path) -> str:
    """Write an answer to a file, and return the names of the files, or why they are not written."""
    try:
        return ", ".join(map(str, answer.save(path)))
    except PipeplanError as error:
        return f"not written: {error}"


def _parts(value: Any, paths: list[list[str]]) -> Any:
    """Return the parts of an answer at these paths; of a list with a number for each rank, the largest."""
    if isinstance(value, list) and value and all(isinstance(item, int | float) for item in value):
        return max(value)
    if isinstance(value, list):
        return [_parts(item, paths) for item in value]
    if not isinstance(value, dict) or [] in paths:
        return value
    parts = {
        name: _parts(value[name], [path[1:] for path in paths if path[0] == name])
        for name in dict.fromkeys(path[0] for path in paths)
        if name in value
    }
    return {name: part for name, part in parts.items() if part not in (None, "", [], {})}
