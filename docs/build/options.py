"""Reference pages of settings and options, and the names and keywords that type checkers see, made from declarations.

``python -m docs.build.options --write`` writes them; a test checks that the files are current.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from docs.build.commands import options_markdown
from pipeplan.answers.checking import CheckOptions
from pipeplan.answers.exporting import ExportOptions
from pipeplan.answers.outputs import built_in_formats, export_formats
from pipeplan.answers.published import AllowOptions
from pipeplan.answers.sweeping import SweepOptions
from pipeplan.costs import (
    GROUPS,
    SETTING_GROUPS,
    SETTINGS,
    CalibrationOptions,
    ConfiguredSettings,
    Options,
    ProfileOptions,
    Range,
    RunOptions,
    Setting,
    SettingsTable,
    table_of,
)
from pipeplan.extensions.planning.answers.options import PlanOptions
from pipeplan.extensions.planning.hardware import PRESETS
from pipeplan.extensions.planning.workload import MODELS
from pipeplan.extensions.review.answers.review import ReviewOptions
from pipeplan.extensions.search.answers.options import ParetoOptions, SearchOptions
from pipeplan.extensions.training.diff.diff import DiffOptions
from pipeplan.strategies import STRATEGIES
from pipeplan.trainers import runners

ROOT = Path(__file__).parents[2]

_HEAD = """# Settings

The settings of shape and costs have the same names everywhere: in the shell (`--forward-times`), in config files
(`forward_times: 12.1`), in Python (`pipeplan.simulate("zbv", forward_times=12.1)`), and in the form and the JSON API of the
web app. An error names the setting that it is about. [Options of commands](options.md) lists the other options.

A list has one value per stage, or one per rank; with as many stages as ranks it is per stage. A time for a rank, as one
number for all ranks or in a list, is the time of all chunks of the rank together, unless `times_per` is `stage`; such a
size is always for all chunks together. With two copies of the model, the chunks are those of the first copy.

Times that are not given follow from the others: a full backward pass is the sum of its halves, or twice the forward pass;
each half is half of the full backward pass, or as long as the forward pass; an overlapped forward and backward pass takes
their sum; a recomputation takes as long as the forward pass. The answer lists what it assumed.
"""

_KEYWORDS = '''"""Keywords of functions, as type checkers see them; made by ``python -m docs.build.options --write``."""

from __future__ import annotations

{imports}

{classes}'''

_NAMES = '''"""Built-in names, which editors complete; made by ``python -m docs.build.options --write``.

Functions take any text in place of them: plugins have further names.
"""

from typing import Literal

{literals}'''

_SETTINGS_IMPORTS = """import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from numpy.typing import NDArray

from pipeplan.costs.layers import Layer
from pipeplan.costs.microbatch_factors import FactorTables
from pipeplan.costs.settings import Communication, SettingsLike, TimesPer
from pipeplan.costs.work_options import DataType, Device, Layered, Receives
from pipeplan.model import Sharding, Streams

GivenTimes = float | Sequence[float] | NDArray[Any]
\"\"\"One number, or one per stage; an array is as good as a list.\"\"\"

GivenSizes = float | str | Sequence[float | str] | NDArray[Any]
\"\"\"The same of sizes: bytes, or texts with a unit such as ``2GiB``.\"\"\"

GivenLengths = Sequence[float | Sequence[float]] | NDArray[Any]
\"\"\"One number per microbatch, or a list of them.\"\"\"

GivenFactors = GivenLengths | Mapping[str, GivenLengths] | FactorTables
\"\"\"One table of factors, or one for each field of ``FactorTables``.\"\"\"
"""

_API_IMPORTS = """from typing import TYPE_CHECKING, Required, TypedDict

from pipeplan.costs import ProfileOptionsKeywords, RunOptionsKeywords, SettingsKeywords

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias, TypeVar

    from numpy.typing import NDArray

    from pipeplan.answers.arguments import ScheduleLike
    from pipeplan.answers.published import NeedsLike
    from pipeplan.costs import (
        Communication,
        GivenFactors,
        GivenLengths,
        GivenSizes,
        GivenTimes,
        Layer,
        SettingsLike,
        TimesPer,
    )
    from pipeplan.extensions.planning import Objective as PlanObjective
    from pipeplan.extensions.planning.answers.options import AllowLike, ClusterLike, FilePath, FixLike, ModelLike
    from pipeplan.extensions.search.answers.options import LayoutChoice, Names
    from pipeplan.foundation.names import TrainerName
    from pipeplan.model import Objective, Sharding, Streams

    Value = TypeVar("Value")
    Varied: TypeAlias = Value | Sequence[Value] | Mapping[str, Value] | NDArray[Any]
"""

_OF_RUNS = (RunOptions, ProfileOptions, CalibrationOptions)
_OF_THE_API = (
    AllowOptions,
    SearchOptions,
    ParetoOptions,
    PlanOptions,
    CheckOptions,
    DiffOptions,
    ExportOptions,
    ReviewOptions,
    SweepOptions,
)
_FUNCTIONS: dict[str, type[Options]] = {
    "SearchKeywords": SearchOptions,
    "ParetoKeywords": ParetoOptions,
    "RunKeywords": RunOptions,
    "ProfileKeywords": ProfileOptions,
    "CheckKeywords": CheckOptions,
    "CompareKeywords": AllowOptions,
    "ExplainKeywords": AllowOptions,
    "DiffKeywords": DiffOptions,
    "ExportKeywords": ExportOptions,
}

_VARIED = '''class SweepKeywords(SweepOptionsKeywords, total=False):
    """Keywords of a study: each setting has one value, or a list of them."""

{fields}
    config: str | os.PathLike[str] | None
    settings: SettingsLike | None
'''

_BY_PLACE = {"model", "cluster"}
"""Options of a plan that its function also takes by place."""

_BY_KIND = {
    "layers": "Sequence[Layer | Mapping[str, Any]] | None",
    "layout": "Sequence[int] | None",
    "stage_layers": "Sequence[int] | str | None",
    "limit": "float | str | Sequence[float | str] | None",
    "per_microbatch": "GivenFactors | None",
    "lengths": "GivenLengths | None",
    "stages": "str | Sequence[int] | None",
}
"""The types of keywords that are wider than those of the fields, which hold tuples."""


def settings_markdown() -> str:
    """The reference: a section a group, a row a setting."""
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for group in SETTING_GROUPS:
        yield f"## {GROUPS[group]}\n"
        yield "| setting | shell | meaning | default | range |"
        yield "|---|---|---|---|---|"
        yield from (_row(setting) for setting in SETTINGS.values() if setting.group == group)
        yield ""


def _row(setting: Setting) -> str:
    cells = (
        f"`{setting.name}`",
        ", ".join(f"`{flag}`" for flag in setting.options),
        setting.help,
        setting.default or "-",
        _range(setting),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _range(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.range is None:
        return setting.unit or "-"
    unit = "" if setting.unit in ("", "time") else f" {setting.unit}"
    return f"{_in_words(setting.range)}{unit}"


def _in_words(range_: Range) -> str:
    if range_.most is not None:
        return f"{range_.least:g} to {range_.most:,}"
    return f"more than {range_.least:g}" if range_.open else f"at least {range_.least:g}"


def keywords(imports: str, records: Sequence[type[Options]], functions: Mapping[str, type[Options]]) -> str:
    """A module with a ``TypedDict`` for each record, below those of the records that it extends, and for each function."""
    written: dict[type[Any], str] = {}
    for record in records:
        for each in reversed(record.__mro__):
            if issubclass(each, Options) and _fields(each):
                written.setdefault(each, _class(each))
    of_functions = [
        f'class {name}(SettingsKeywords, {_name(record)}, total=False):\n    """Options and settings of a function."""\n'
        for name, record in functions.items()
    ]
    if SweepOptions in records:
        types = ((each.name, _type(SettingsTable, each)) for each in _fields(SettingsTable))
        several = (f"    {name}: Varied[{type_}]" for name, type_ in types)
        of_functions.append(_VARIED.format(fields="\n".join(several)))
    return _KEYWORDS.format(imports=imports, classes="\n\n".join([*written.values(), *of_functions]))


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
        found = about.keyword or _BY_KIND.get(about.kind, str(field.type))
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
    lines = "".join(f'    "{name}",\n' for name in named)
    return f'{kind} = Literal[\n{lines}]\n"""{about}"""\n'


def files() -> dict[Path, str]:
    """The files with what they must hold."""
    source = ROOT / "src" / "pipeplan"
    return {
        source / "foundation" / "names.py": names(),
        source / "extensions" / "planning" / "names.py": names_of_planning(),
        ROOT / "docs" / "reference" / "settings.md": settings_markdown(),
        ROOT / "docs" / "reference" / "options.md": options_markdown(),
        source / "costs" / "keywords.py": keywords(_SETTINGS_IMPORTS, [ConfiguredSettings, *_OF_RUNS], {}),
        source / "answers" / "keywords.py": keywords(_API_IMPORTS, _OF_THE_API, _FUNCTIONS),
    }


if __name__ == "__main__":
    for path, text in files().items():
        if "--write" in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is out of date: python -m docs.build.options --write")
