"""Schedules on all combinations of several settings: the function, its record and its table."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, final

import numpy as np
from msgspec import to_builtins
from msgspec.structs import asdict

from pipeplan.answers.answers import Listing, contents_of
from pipeplan.answers.arguments import ScheduleLike, apart, configured
from pipeplan.answers.comparing.compare import listed_schedules
from pipeplan.answers.outputs import exported
from pipeplan.answers.parts import columns, line
from pipeplan.answers.simulating.simulate import Summary, simulated
from pipeplan.answers.sources import Source, label, opened, settings_for
from pipeplan.costs import ALIASES, OPS, WORKERS, Options, Settings, option, options_of
from pipeplan.foundation.documents import json_text
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.readable import Times, percent
from pipeplan.foundation.records import Record
from pipeplan.foundation.sweeps import Finished, ProgressListener, SweepProgress, SweepTask
from pipeplan.foundation.sweeps import sweep as run_tasks
from pipeplan.model import Schedule, counted, shortened
from pipeplan.strategies import STRATEGIES, Strategy

if TYPE_CHECKING:
    import os

    from pipeplan.answers.keywords import SweepKeywords
    from pipeplan.answers.parts import Part

MOST_CASES = 100_000
"""Maximum number of cases of a study; more are a typing error."""

MOST_ROWS = 40
"""Maximum number of rows that are printed."""


_LONGEST_CELL = 12
"""Maximum number of characters of a setting in the table, which leaves room for the figures."""


class StudyCase(Record, frozen=True, kw_only=True):
    """One schedule on one combination of the varied settings: its figures, or the reason why it is not available."""

    schedule: str
    settings: dict[str, Any]
    figures: Summary | None
    refused: str | None


@final
class Study(Listing[StudyCase], frozen=True, kw_only=True, eq=False):
    """Schedules on all combinations of the varied settings.

    Iteration gives the cases in their order: the schedules of the first combination, then those of the second.
    ``to_frame()`` has a row per case: the schedule, a column for each varied setting, the figures, and ``refused``.

    Attributes
    ----------
    varied
        Names of the varied settings.
    time_unit
        Unit of the times; may be empty.
    cases
        All cases.
    """

    _listed = "cases"
    name_attribute = ""

    varied: tuple[str, ...]
    time_unit: str
    cases: tuple[StudyCase, ...]

    def _table(self) -> Iterator[Part]:
        """Return a row per case, up to ``MOST_ROWS``."""
        shown = [case for case in self if case.figures is not None][:MOST_ROWS]
        refused = sum(case.figures is None for case in self)
        times = Times.of((case.figures.makespan for case in shown if case.figures is not None), self.time_unit)
        unit = f"\n({times.unit})" if times.unit else ""
        settings = [name.replace("_", "\n") for name in self.varied]
        table = columns(
            *("schedule", *settings, f"makespan{unit}", "bubble", "peak\nact.", "gap"), padding=1, least=settings[::-1]
        )
        for case in shown:
            figures = cast("Summary", case.figures)
            table.add_row(
                case.schedule if figures.fits else f"{case.schedule} !",
                *(_short(case.settings[name]) for name in self.varied),
                times.number(figures.makespan),
                percent(figures.idle_over_total),
                f"{figures.peak_activation:.4g}",
                "-" if figures.gap is None else percent(figures.gap),
            )
        yield table
        rest = len(self) - refused - len(shown)
        yield from [line(f"{counted(rest, 'more case')}: to_frame() has all")] if rest else []
        yield from [line(f"{counted(refused, 'case')} not possible: to_frame() has the reasons")] if refused else []
        if any(case.figures is not None and not case.figures.fits for case in shown):
            yield line("! over the memory limit")

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        empty = dict.fromkeys(Summary.__struct_fields__) | {"fits": False}
        return [
            {"schedule": case.schedule}
            | case.settings
            | {
                # A setting of the same name that is varied is the value that was set.
                name: value
                for name, value in (empty if case.figures is None else asdict(case.figures)).items()
                if name not in case.settings
            }
            | {"refused": case.refused}
            for case in self
        ]

    def __repr__(self) -> str:
        refused = sum(case.figures is None for case in self)
        return (
            f"<Study of {', '.join(self.varied) or 'one shape'}: {counted(len(self), 'case')}, {refused} not possible>"
        )


@dataclass(frozen=True, kw_only=True)
class SweepOptions(Options):
    """Workers of a study, and its store."""

    workers: int = option(
        1, kind="count", group="work", range=WORKERS, help="Number of worker processes; 1 is this process."
    )
    store: str | os.PathLike[str] | None = option(
        kind="file", group="work", help="Checkpoint file; the same study, or a larger one, resumes from it."
    )


def sweep(
    schedules: ScheduleLike | Sequence[ScheduleLike] | None = None,
    *,
    progress: bool | ProgressListener = False,
    **options: Unpack[SweepKeywords],
) -> Study:
    """Simulate schedules on all combinations of several settings: a study in one call.

    A setting that is a list, a range or an array varies: each of its entries is a value as ``simulate`` takes
    it. So does a dictionary, whose keys name its values in the answer. A tuple is one value with an entry per stage or rank,
    and ``settings`` never varies.

    Parameters
    ----------
    schedules
        One schedule, or several, as :func:`pipeplan.compare` takes them. Default: every strategy.
    progress
        True for a progress bar on stderr; or a function that is called with the progress after each case.
    **options
        Workers and store, and shape and costs, each one value or several.

    Other Parameters
    ----------------
    workers
        Number of worker processes; 1 is this process (default: 1).
    store
        Checkpoint file; the same study, or a larger one, resumes from it.
    settings, config
        Settings of shape and costs, as a value or a mapping, or in a config file; the other keywords override them. All
        are keywords, too: ``docs/reference/options.md`` lists them.

    Returns
    -------
    Study
        One case for each combination and schedule. A schedule that is not available for a combination, for example because
        it needs another number of chunks, has the reason in ``refused``.

    Raises
    ------
    InputError
        For a value that cannot be, an unknown name, more than 100,000 cases, and a store that cannot be used.
    RunError
        If workers keep dying, or a case fails with an error that is not one of pipeplan's.

    Examples
    --------
    >>> study = pipeplan.sweep(["1f1b", "zbv"], ranks=4, microbatches=[8, 16], memory_limit=[None, "4act"])
    >>> len(study), study.varied
    (8, ('microbatches', 'memory_limit'))
    >>> study.cases[1].schedule, study.cases[1].figures.makespan
    ('zbv', 25.5)
    """
    own, keywords = apart(SweepOptions, options)
    varied = {name: _labelled(value) for name, value in keywords.items() if name != "settings" and _varies(value)}
    _, base = configured({name: value for name, value in keywords.items() if name not in varied})
    return studied(schedules, base, varied, options_of(SweepOptions, own), progress=progress)


def studied(
    schedules: ScheduleLike | Sequence[ScheduleLike] | None,
    base: Settings,
    varied: Mapping[str, Sequence[tuple[str | None, Any]]],
    options: SweepOptions,
    *,
    progress: bool | ProgressListener = False,
) -> Study:
    """See :func:`sweep`."""
    sources = _sources(schedules)
    count = prod(map(len, varied.values()))
    if len(sources) * count > MOST_CASES:
        raise InputError(f"{len(sources):,} schedules on {count:,} combinations are more than {MOST_CASES:,} cases")
    combinations = _combinations(base, varied)
    names = tuple(combinations[0][0])
    tasks: dict[str, SweepTask[Any]] = {}
    cases: list[tuple[str, dict[str, Any], str]] = []
    identities = {name: _identity(name, source, options) for name, source in sources.items()}
    for shown, settings in combinations:
        values = {varying: getattr(settings, varying) for varying in names}
        for name, source in sources.items():
            key = json_text({"schedule": identities[name], **values}, compact=True)
            # A schedule ignores other settings that it lacks, as in a comparison, but not one that is varied.
            tasks[key] = SweepTask(key, (_sent(source), settings_for(source, settings).replace(**values)))
            cases.append((name, shown, key))
    finished = _finished(list(tasks.values()), base, options, progress)
    return Study(
        varied=names,
        time_unit=base.time_unit,
        cases=tuple(_case(name, shown, finished[key]) for name, shown, key in cases),
    )


def _varies(value: object) -> bool:
    # A mapping of ops is the segments of all stages, one value.
    return value.keys() != set(OPS) if isinstance(value, dict) else isinstance(value, list | range | np.ndarray)


def _labelled(values: Any) -> list[tuple[str | None, Any]]:
    """Return each value of a varied setting with its name in the answer; None where it stands for itself."""
    return (
        [(str(name), value) for name, value in values.items()]
        if isinstance(values, dict)
        else [(None, value) for value in values]
    )


def _sources(schedules: ScheduleLike | Sequence[ScheduleLike] | None) -> dict[str, Source]:
    chosen: Iterable[ScheduleLike] = STRATEGIES.values() if schedules is None else listed_schedules([schedules])
    sources: dict[str, Source] = {}
    for source in chosen:
        opened_source = opened(source)
        name = opened_source.name if isinstance(opened_source, Strategy) else label(source)
        if name in sources:
            raise InputError(f"a study has the schedule {name} twice: rename one of them", field="schedules")
        sources[name] = opened_source
    return sources


def _combinations(
    base: Settings, varied: Mapping[str, Sequence[tuple[str | None, Any]]]
) -> list[tuple[dict[str, Any], Settings]]:
    """Return each combination as the answer shows it, by the names of settings, and its settings, which are checked."""
    empty = next((name for name, values in varied.items() if not values), None)
    if empty is not None:
        raise InputError(f"{empty} has no values to vary", field=empty)
    names = [ALIASES.get(name, name) for name in varied]
    combinations = []
    for chosen in product(*varied.values()):
        settings = base.replace(**{name: value for name, (_, value) in zip(names, chosen, strict=True)})
        shown = {
            name: getattr(settings, name) if label is None else label
            for name, (label, _) in zip(names, chosen, strict=True)
        }
        combinations.append((shown, settings))
    return combinations


def _sent(source: Source) -> str | Source:
    """Return what a worker process gets of a schedule: of a strategy that it has as well, the name."""
    return source.name if isinstance(source, Strategy) and STRATEGIES.built_in.get(source.name) is source else source


def _identity(name: str, source: Source, options: SweepOptions) -> str:
    """Return the name of a schedule in the store, with a digest of what the name does not determine."""
    if options.store is None or isinstance(_sent(source), str):
        return name
    if isinstance(source, Strategy):
        try:
            text = inspect.getsource(inspect.unwrap(cast("Any", getattr(source.build, "build", source.build))))
        except (OSError, TypeError):
            raise InputError(
                f"a study with a store needs the source code of the strategy {name}: define it in a file", field="store"
            ) from None
    else:
        text = exported(contents_of(source.schedule if not isinstance(source, Schedule) else source), "json")
    return f"{name} {blake2b(text.encode(), digest_size=8).hexdigest()}"


def _simulated(payload: tuple[str | Source, Settings]) -> Summary:
    source, settings = payload
    return Summary.of(simulated(source, settings))


def _finished(
    tasks: Sequence[SweepTask[Any]], base: Settings, options: SweepOptions, progress: bool | ProgressListener
) -> dict[str, Finished[Summary]]:
    with _bar() if progress is True else nullcontext(progress or None) as listener:
        return {
            result.key: result
            for result in run_tasks(
                _simulated,
                tasks,
                answer=Summary,
                asked={"what": "study", "settings": to_builtins(base.changed)},
                workers=options.workers,
                store=None if options.store is None else Path(options.store),
                progress=listener,
            )
        }


@contextmanager
def _bar() -> Iterator[ProgressListener]:
    """Show a progress bar on stderr."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("simulating", total=None)

        def show(progress: SweepProgress) -> None:
            bar.update(task, completed=progress.done, total=progress.tasks)

        yield show


def _case(name: str, values: dict[str, Any], finished: Finished[Summary]) -> StudyCase:
    failure = finished.failure
    if failure is not None and failure.kind == "refused":
        return StudyCase(schedule=name, settings=values, figures=None, refused=failure.message.partition("\n")[0])
    return StudyCase(schedule=name, settings=values, figures=finished.required(), refused=None)


def _short(value: object) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else shortened(str(value), _LONGEST_CELL)
