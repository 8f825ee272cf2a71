"""Reference pages of settings and options, and the names and keywords that type checkers see, made from declarations.

``python -m docs.build.options --write`` writes them; a test checks that the files are current.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from textwrap import fill
from typing import Any

import pipeplan
from docs.build.options_page import options_markdown
from pipeplan.answers.checking import CheckOptions
from pipeplan.answers.exporting import ExportOptions
from pipeplan.answers.outputs import built_in_formats, export_formats
from pipeplan.answers.published import AllowOptions
from pipeplan.answers.sweeping import SweepOptions
from pipeplan.costs import (
    KINDS,
    CalibrationOptions,
    ConfiguredSettings,
    Options,
    Setting,
    SettingsTable,
    table_of,
)
from pipeplan.extensions.planning.answers.options import EstimateOptions, PlanOptions
from pipeplan.extensions.planning.hardware import PRESETS
from pipeplan.extensions.planning.workload import MODELS
from pipeplan.extensions.review.answers.review import ReviewOptions
from pipeplan.extensions.search.answers.options import ParetoOptions, SearchOptions
from pipeplan.extensions.training.diff.diff import DiffOptions
from pipeplan.extensions.training.options import ProfileOptions, RunOptions
from pipeplan.strategies import STRATEGIES
from pipeplan.trainers import runners

ROOT = Path(__file__).parents[2]

_KEYWORDS = '''"""Keywords of functions, as type checkers see them; made by ``python -m docs.build.options --write``."""

from __future__ import annotations

{imports}

{classes}'''

_NAMES = '''"""Built-in names, which editors complete; made by ``python -m docs.build.options --write``.

Functions take any text in place of them: plugins have further names.
"""

from typing import Literal

# fmt: off
{literals}'''

_IMPORTS = {
    "costs": """import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from numpy.typing import NDArray

from pipeplan.costs.layers import Layer
from pipeplan.costs.microbatch_factors import FactorTables
from pipeplan.costs.segments import OpSegments
from pipeplan.costs.settings import Communication, SettingsLike, TimesPer
from pipeplan.costs.work_options import Device
from pipeplan.model import Sharding, Streams

GivenTimes = float | Sequence[float] | NDArray[Any]
\"\"\"One number, or one per stage; an array is as good as a list.\"\"\"

GivenSizes = float | str | Sequence[float | str] | NDArray[Any]
\"\"\"The same of sizes: bytes, or texts with a unit such as ``2GiB``.\"\"\"

GivenLengths = Sequence[float | Sequence[float]] | NDArray[Any]
\"\"\"One number per microbatch, or a list of them.\"\"\"

GivenFactors = GivenLengths | Mapping[str, GivenLengths] | FactorTables
\"\"\"One table of factors, or one for each field of ``FactorTables``.\"\"\"
""",
    "answers": """from typing import TYPE_CHECKING, TypedDict

from pipeplan.costs import SettingsKeywords

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias, TypeVar

    from numpy.typing import NDArray

    from pipeplan.answers.published import NeedsLike
    from pipeplan.costs import (
        Communication,
        GivenFactors,
        GivenLengths,
        GivenSizes,
        GivenTimes,
        Layer,
        OpSegments,
        SettingsLike,
        TimesPer,
    )
    from pipeplan.foundation.names import TrainerName
    from pipeplan.model import Sharding, Streams

    Value = TypeVar("Value")
    Varied: TypeAlias = Value | Sequence[Value] | Mapping[str, Value] | NDArray[Any]
""",
    "extensions/search": """from typing import TYPE_CHECKING

from pipeplan.answers.keywords import AllowOptionsKeywords
from pipeplan.costs import SettingsKeywords

if TYPE_CHECKING:
    from pipeplan.answers.arguments import ScheduleLike
    from pipeplan.extensions.search.answers.options import LayoutChoice, Names
    from pipeplan.model import Objective
""",
    "extensions/planning": """from typing import TYPE_CHECKING, Required, TypedDict

if TYPE_CHECKING:
    from pipeplan.extensions.planning import Objective as PlanObjective
    from pipeplan.extensions.planning.answers.options import AllowLike, FilePath, FixLike
""",
    "extensions/review": """from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from pipeplan.extensions.planning.answers.options import ClusterLike, FilePath, ModelLike
""",
    "extensions/training": """from typing import TYPE_CHECKING, TypedDict

from pipeplan.costs import DeviceOptionsKeywords, MeasuringOptionsKeywords, SettingsKeywords

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from pipeplan.answers.answers import FilePath
    from pipeplan.extensions.training.options import DataType, Layered
    from pipeplan.passes import Receives
""",
}
"""Imports of the generated module ``keywords`` in each folder."""

FUNCTIONS: dict[Callable[..., Any], tuple[type[Options], ...]] = {
    pipeplan.simulate: (ConfiguredSettings,),
    pipeplan.compare: (AllowOptions, ConfiguredSettings),
    pipeplan.explain: (AllowOptions, ConfiguredSettings),
    pipeplan.check: (CheckOptions, ConfiguredSettings),
    pipeplan.export: (ExportOptions, ConfiguredSettings),
    pipeplan.sweep: (SweepOptions, ConfiguredSettings),
    pipeplan.search: (SearchOptions, ConfiguredSettings),
    pipeplan.pareto: (ParetoOptions, ConfiguredSettings),
    pipeplan.plan: (PlanOptions,),
    pipeplan.estimate: (EstimateOptions,),
    pipeplan.review: (ReviewOptions,),
    pipeplan.run: (RunOptions, ConfiguredSettings),
    pipeplan.profile: (ProfileOptions, CalibrationOptions, ConfiguredSettings),
    pipeplan.diff: (DiffOptions, ConfiguredSettings),
}
"""Functions with the records whose options are their keywords."""

_VARIED = '''class SweepKeywords(SweepOptionsKeywords, total=False):
    """Keywords of a study: each setting has one value, or a list of them."""

{fields}
    config: str | os.PathLike[str] | None
    settings: SettingsLike | None
'''

_BY_PLACE = {"model", "cluster"}
"""Options of a plan that its function also takes by place."""


def keywords(folder: str) -> str:
    """The module of keywords in a folder: a ``TypedDict`` for each record and each function that belong to it."""
    written: dict[type[Any], str] = {}
    of_functions = []
    for function, records in FUNCTIONS.items():
        for record in reversed([base for each in records for base in each.__mro__]):
            if issubclass(record, Options) and _fields(record) and _folder(record) == folder:
                written.setdefault(record, _class(record))
        if len(records) > 1 and _folder(function) == folder and function is not pipeplan.sweep:
            name = f"{function.__name__.capitalize()}Keywords"
            of_functions.append(
                f"class {name}(SettingsKeywords, {_name(records[0])}, total=False):\n"
                f'    """Options and settings of :func:`pipeplan.{function.__name__}`."""\n'
            )
    if folder == _folder(SweepOptions):
        types = ((each.name, _type(SettingsTable, each)) for each in _fields(SettingsTable))
        several = (f"    {name}: Varied[{type_}]" for name, type_ in types)
        of_functions.append(_VARIED.format(fields="\n".join(several)))
    return _KEYWORDS.format(imports=_IMPORTS[folder], classes="\n\n".join([*written.values(), *of_functions]))


def _folder(owner: Any) -> str:
    """Return the folder in the package that a function or a record belongs to: that of its extension, if it has one."""
    folders = owner.__module__.split(".")[1:]
    folder = "/".join(folders[: 2 if folders[0] == "extensions" else 1])
    return folder if folder in _IMPORTS else "answers"


def _class(record: type[Any]) -> str:
    parents = [_name(base) for base in record.__bases__ if base is not Options and _fields(base)] or ["TypedDict"]
    lines = [f"    {each.name}: {_type(record, each)}" for each in _own(record)]
    head = f"class {_name(record)}({', '.join(parents)}, total=False):"
    return "\n".join([head, f'    """Keywords of {record.__name__}."""', *([""] if lines else []), *lines, ""])


def _own(record: type[Any]) -> list[Field[Any]]:
    own = vars(record).get("__annotations__", ())
    placed = _BY_PLACE if record is PlanOptions else ()
    return [each for each in _fields(record) if each.name in own and each.name not in placed]


def _fields(record: type[Any]) -> list[Field[Any]]:
    return [each for each in fields(record) if "setting" in each.metadata]


def _name(record: type[Any]) -> str:
    return "PlanKeywords" if record is PlanOptions else record.__name__.removeprefix("Configured") + "Keywords"


def _type(record: type[Any], field: Field[Any]) -> str:
    about = table_of(record)[field.name]
    if about.kind == "per_stage":
        found = f"{'GivenSizes' if about.in_bytes else 'GivenTimes'} | None"
    else:
        found = about.keyword or KINDS[about.kind].keyword or str(field.type)
    if about.in_bytes and about.kind == "number":
        found = f"float | str{' | None' if 'None' in found else ''}"
    if record is SettingsTable and "None" not in found:
        found += " | None"
    return f"Required[{found}]" if field.default is MISSING else found


def names() -> str:
    """A module with a ``Literal`` for each kind of name."""
    kinds: dict[str, tuple[str, Iterable[str]]] = {
        "ScheduleName": ("Strategies.", STRATEGIES.built_in),
        "FormatName": ("Formats of :func:`pipeplan.export`.", export_formats(built_in_formats())),
        "TrainerName": ("Trainers of :func:`pipeplan.check`.", runners()),
    }
    return _NAMES.format(literals="\n".join(_literal(kind, *entry) for kind, entry in kinds.items()))


def names_of_planning() -> str:
    """A module with a ``Literal`` for each kind of name in planning."""
    kinds: dict[str, tuple[str, Iterable[str]]] = {
        "GpuName": ("GPUs of a cluster.", PRESETS.built_in),
        "ModelName": ("Models of :func:`pipeplan.plan`.", sorted(MODELS.built_in)),
    }
    return _NAMES.format(literals="\n".join(_literal(kind, *entry) for kind, entry in kinds.items()))


def _literal(kind: str, about: str, named: Iterable[str]) -> str:
    names = ", ".join(f'"{name}"' for name in named)
    lines = fill(names, 120, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return f'{kind} = Literal[\n{lines}\n]\n"""{about}"""\n'


def documented(source: str, function: str, records: Sequence[type[Options]]) -> str:
    """Return the source of a module with the options of a function in its docstring: its section *Other Parameters*."""
    definition = next(
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == function and ast.get_docstring(node)
    )
    text = definition.body[0]
    lines = source.split("\n")
    docstring = lines[text.lineno - 1 : text.end_lineno]
    sections = [place for place, line in enumerate(docstring) if set(line.strip()) == {"-"}]
    titles = [docstring[place - 1].strip() for place in sections]
    ends = [*(place - 1 for place in sections), len(docstring) - 1]
    own = titles.index(_SECTION) if _SECTION in titles else titles.index("Parameters")
    start = ends[own] if _SECTION in titles else ends[own + 1]
    lines[text.lineno - 1 + start : text.lineno - 1 + ends[own + 1]] = _section(function, records)
    return "\n".join(lines)


_SECTION = "Other Parameters"


def _section(function: str, records: Sequence[type[Options]]) -> Iterator[str]:
    placed = {*_BY_PLACE} if function == "plan" else {"calibrate"}
    yield f"    {_SECTION}"
    yield f"    {'-' * len(_SECTION)}"
    options = {name: option.full_help for record in records[:2] for name, option in _own_options(record)}
    for name, text in options.items():
        if name not in placed:
            yield f"    {name}"
            yield fill(text, 120, initial_indent=" " * 8, subsequent_indent=" " * 8)
    if ConfiguredSettings in records:
        yield "    settings, config"
        yield fill(_OF_SETTINGS, 120, initial_indent=" " * 8, subsequent_indent=" " * 8)
    yield ""


_OF_SETTINGS = (
    "Settings of shape and costs, as a value or a mapping, or in a config file; the other keywords override them. All are "
    "keywords, too: ``docs/reference/options.md`` lists them."
)


def _own_options(record: type[Options]) -> Iterator[tuple[str, Setting]]:
    if not issubclass(record, ConfiguredSettings):
        yield from table_of(record).items()


def files() -> dict[Path, str]:
    """The files with what they must hold."""
    source = ROOT / "src" / "pipeplan"
    return {
        source / "foundation" / "names.py": names(),
        source / "extensions" / "planning" / "names.py": names_of_planning(),
        ROOT / "docs" / "reference" / "options.md": options_markdown(),
        **{source / folder / "keywords.py": keywords(folder) for folder in _IMPORTS},
        **_documented(),
    }


def _documented() -> dict[Path, str]:
    """The modules of the functions, with the options in their docstrings."""
    modules: dict[Path, str] = {}
    for function, records in FUNCTIONS.items():
        path = Path(inspect.getfile(function))
        text = modules.get(path) or path.read_text(encoding="utf-8")
        modules[path] = documented(text, function.__name__, records)
    return modules


if __name__ == "__main__":
    for path, text in files().items():
        if "--write" in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is out of date: python -m docs.build.options --write")
