"""``pipeplan plan``."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pipeplan.api import require_outputs
from pipeplan.api.planning.planned import (
    PLAN_ENDINGS,
    FixLike,
    Plan,
    PlanOptions,
    PlanProgress,
    planned,
)
from pipeplan.cli.answers import print_json, tell, written
from pipeplan.cli.options import command
from pipeplan.cli.progress import ProgressBar, progress_bar
from pipeplan.costs import option
from pipeplan.drawing import LookOptions
from pipeplan.errors import InputError, UnknownNameError
from pipeplan.files import Written, require_apart, require_writable
from pipeplan.readable import time_text
from pipeplan.trainers import TRAINERS, require_release


@dataclass(frozen=True, kw_only=True)
class PlanOutputOptions(LookOptions):
    """What is printed and written."""

    flags: str | None = option(
        kind="text", title="Flags", group="output",
        help="Plan for this trainer and print only its flags, with step time, memory and notes on stderr: "
        f"{', '.join(TRAINERS)}.",
    )  # fmt: skip
    trainer_version: str | None = option(
        kind="text", title="Release", group="output", default="the newest known release on PyPI",
        help="Release of the --flags trainer, such as 0.19 for megatron or main for torchtitan.",
    )  # fmt: skip
    output: tuple[Path, ...] = option(
        (), kind="files", title="Output", group="output", flags=("-o",),
        help="File to write; repeatable. The extension selects the content: .json everything; .png .svg .pdf front, time "
        "and memory; .yaml the best configuration, for `pipeplan estimate`; .sh the flags; .html .csv .trace.json the "
        "schedule; .searched.csv a better order, if one was found.",
    )  # fmt: skip


@command
def plan(*, options: PlanOptions, beside: PlanOutputOptions, json: bool = False) -> int:
    """Choose the configuration to train with, for a model, a cluster and a batch.

    Evaluates every valid combination of parallelism degrees, schedule, layout and recomputation that no bound rules out.
    Reports the best one with its trainer flags, why the others lose, where time and memory go, what would change the choice,
    and how certain it is. Exits with 1 if nothing fits. Ctrl-C ends the search with the best plan so far.
    """
    flags, trainer_version, output = beside.flags, beside.trainer_version, beside.output
    if flags is not None and json:
        raise InputError("--flags prints the flags and nothing else: leave out --json, which holds them, too")
    if trainer_version is not None and flags is None:
        raise InputError("--trainer-version is of the flags of one trainer: add --flags", field="trainer_version")
    if flags is not None:
        options = replace(options, fix=_for_trainer(flags, options.fix))
        if trainer_version is not None:
            require_release(flags, trainer_version)
    files = map(Path, filter(None, (options.model, options.cluster, options.calibration)))  # type: ignore[arg-type]
    _require(output, [path for path in files if os.path.isfile(path)])
    with progress_bar("planning", quiet=json or flags is not None or not sys.stderr.isatty()) as bar:
        found = planned(options, progress=partial(_show, bar))
    if found.best is None:
        return _nothing_fits(found, json=json)
    if flags is not None and trainer_version is not None:
        found = found.for_releases({flags: trainer_version})
    writers = {path: partial(_write, found, flags, beside) for path in output}
    with written(writers) as known:
        if flags is not None:
            print(found.flags_for(flags).text)
            tell(found.summary)
            for note in filter(None, (found.unfinished, *found.chosen.assumed)):
                tell(f"note: {note}")
            for warning in [each for each in found.flags_for(flags).warnings if each not in known]:
                tell(f"warning: {warning}")
            for name in [] if any(path.suffix.lower() == ".sh" for path in output) else found.flags_for(flags).files:
                tell(f"warning: the flags name {name}, which is not written: add -o NAME.sh to write both")
        elif json:
            print_json(found.to_dict())
        else:
            found.print()
    return 0


def _show(bar: ProgressBar, progress: PlanProgress) -> None:
    """Show how far a plan is, with the best so far."""
    best = "" if progress.best is None else f"  best {time_text(progress.best.step_time, 's')}"
    bar.show(progress.share, f"{progress.phase}: {progress.estimated:,} estimated{best}")


def _for_trainer(flags: str, fix: FixLike | None) -> FixLike:
    """What is fixed where the flags of one trainer are wanted. Raises UnknownNameError for another name."""
    if flags not in TRAINERS:
        raise UnknownNameError("trainer", flags, TRAINERS, field="flags")
    pairs = tuple(fix or ())
    return pairs if any(pair.startswith("trainer=") for pair in pairs) else (*pairs, f"trainer={flags}")


def _require(outputs: tuple[Path, ...], inputs: list[Path]) -> None:
    """Check, before any work is done, that outputs can be written and are no inputs. Raises InputError."""
    for path in outputs:
        if path.name.lower().endswith(PLAN_ENDINGS):
            require_writable(path)
        else:
            require_outputs(
                [path], ("record", "plan picture", "pictures", "timeline", "schedule", "costs"), what="a plan"
            )
    require_apart(outputs, inputs)


def _write(found: Plan, flags: str | None, look: LookOptions, path: Path) -> Written:
    ending = f".{flags}.sh" if flags is not None and path.suffix.lower() == ".sh" else None
    return found.save(path, ending=ending, **look.look)


def _nothing_fits(found: Plan, *, json: bool) -> int:
    if json:
        print_json(found.to_dict())
        tell(f"pipeplan: {found.miss}")
    else:
        found.print()
    return 1
