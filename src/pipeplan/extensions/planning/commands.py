"""``pipeplan plan``, ``estimate`` and ``calibrate``."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pipeplan.answers import ShownOptions, require_outputs
from pipeplan.cli.answers import deliver, print_answer, tell, written
from pipeplan.cli.options import SourceOptions, command, output_option
from pipeplan.cli.progress import FEW_REFRESHES, ProgressBar, progress_bar
from pipeplan.costs import CalibrationOptions, Options, option
from pipeplan.drawing import LookOptions
from pipeplan.extensions.planning import PlanProgress, require_calibration_file
from pipeplan.extensions.planning.answers.calibrations import calibrated
from pipeplan.extensions.planning.answers.estimation import estimated
from pipeplan.extensions.planning.answers.options import EstimateOptions, FixLike, PlanOptions
from pipeplan.extensions.planning.answers.planned import planned
from pipeplan.extensions.planning.answers.plans import OWN_ENDINGS, Plan
from pipeplan.extensions.planning.trainers import plan_trainer, plan_trainers
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.files import Written, require_apart, require_writable
from pipeplan.foundation.readable import time_text


@dataclass(frozen=True, kw_only=True)
class PlanOutputOptions(LookOptions):
    """Output of a plan: flags and files."""

    # fmt: off
    flags: str | None = option(
        kind="text", group="output",
        help="Plan for this trainer and print only its flags, with step time, memory and notes on stderr: "
        f"{', '.join(plan_trainers())}.",
    )
    trainer_version: str | None = option(
        kind="text", group="output", usual=False, default="the newest known release on PyPI",
        help="Release of the --flags trainer, such as 0.19 for megatron or main for torchtitan.",
    )
    output: tuple[Path, ...] = output_option(
        "File to write; repeatable. The suffix selects the content: .json everything; .png .svg .pdf front, time and "
        "memory; .yaml the best configuration, for `pipeplan estimate`; .sh the flags; .html .csv .trace.json the "
        "schedule; .searched.csv a better order, if one was found."
    )
    # fmt: on


@command
def plan(*, options: PlanOptions, beside: PlanOutputOptions, shown: ShownOptions, json: bool = False) -> int:
    """Choose the configuration to train with, for a model, a cluster and a batch.

    Evaluates every valid combination of parallelism degrees, schedule, layout and recomputation that no bound rules out.
    Reports the best one with its trainer flags, why the others lose, where time and memory go, what would change the choice,
    and how certain it is. Exits with 1 if nothing fits. Ctrl-C ends the search with the best plan so far.
    """
    flags, trainer_version, output = beside.flags, beside.trainer_version, beside.output
    if flags is not None and json:
        raise InputError("--flags and --json exclude each other; --json already contains the flags")
    if trainer_version is not None and flags is None:
        raise InputError("--trainer-version needs --flags TRAINER", field="trainer_version")
    if flags is not None:
        flags = plan_trainer(flags).name
        options = replace(options, fix=_for_trainer(flags, options.fix))
        if trainer_version is not None:
            plan_trainer(flags).release(trainer_version)
    files = map(Path, filter(None, (options.model, options.cluster, options.calibration, options.runs)))  # type: ignore[arg-type]
    _require(output, [path for path in files if os.path.isfile(path)])
    with progress_bar("planning", quiet=json or flags is not None or not sys.stderr.isatty()) as bar:
        result = planned(options, progress=partial(_show, bar))
    if result.best is None:
        show = partial(print_answer, result, shown)
        deliver(result, json=json, messages=[f"pipeplan: {result.miss}"], text=show)
        return 1
    if flags is not None and trainer_version is not None:
        result = result.for_releases({flags: trainer_version})
    writers = {path: partial(_write, result, flags, beside) for path in output}
    if flags is None:
        deliver(result, writers, json=json, text=partial(print_answer, result, shown))
        return 0
    trainer_flags = result.flags_for(flags)
    with written(writers) as reported:
        print(trainer_flags.text)
        tell(f"{result.trainer}: {result.headline}")
        for note in (*result.remarks, *result.chosen.assumed):
            tell(f"note: {note}")
        for warning in [text for text in trainer_flags.warnings if text not in reported]:
            tell(f"warning: {warning}")
        for name in [] if any(path.suffix.lower() == ".sh" for path in output) else trainer_flags.files:
            tell(f"warning: the flags name {name}, which is not written: add -o NAME.sh to write both")
    return 0


def _show(bar: ProgressBar, progress: PlanProgress) -> None:
    bar.show(progress.share, progress_text(progress))


def progress_text(progress: PlanProgress) -> str:
    """Return the phase, the number of estimates and the best step time so far."""
    best = "" if progress.best is None else f"  best {time_text(progress.best.step_time, 's')}"
    return f"{progress.phase}: {progress.estimated:,} estimated{best}"


def _for_trainer(flags: str, fix: FixLike | None) -> FixLike:
    """Return the fixed settings with the trainer added. Raises InputError if another trainer is fixed."""
    pairs = tuple(fix or ())
    fixed = next((pair.removeprefix("trainer=") for pair in pairs if pair.startswith("trainer=")), None)
    if fixed is None:
        return (*pairs, f"trainer={flags}")
    if plan_trainer(flags).schedules is None:  # it shows the plan of any trainer
        return pairs
    if flags not in [plan_trainer(name.strip()).name for name in fixed.split(",")]:
        raise InputError(f"--flags {flags} and --fix trainer={fixed} exclude each other", field="flags")
    return (*(pair for pair in pairs if not pair.startswith("trainer=")), f"trainer={flags}")


def _require(outputs: tuple[Path, ...], inputs: list[Path]) -> None:
    """Raise InputError for outputs that cannot be written or are inputs, before any work."""
    require_outputs(
        outputs,
        ("record", "plan picture", "pictures", "timeline", "schedule", "costs"),
        what="a plan",
        own=OWN_ENDINGS,
    )
    require_apart(outputs, inputs)


def _write(result: Plan, flags: str | None, look: LookOptions, path: Path) -> Written:
    ending = f".{flags}.sh" if flags is not None and path.suffix.lower() == ".sh" else None
    return result.save(path, ending=ending, **look.look)


@dataclass(frozen=True, kw_only=True)
class FileOptions(Options):
    """File of the estimates."""

    output: tuple[Path, ...] = output_option("JSON file to write the estimates to.")


@command
def estimate(
    file: Path, /, *, options: EstimateOptions, beside: FileOptions, shown: ShownOptions, json: bool = False
) -> int:
    """Estimate step time and memory of given configurations.

    With --measured, says how far the prediction is from a run, and which part of it. Exits with 1 if no configuration can be
    estimated.

    Parameters
    ----------
    file
        YAML, TOML or JSON file: one configuration, as `pipeplan plan -o best.yaml` writes it, or a list `rows` of
        configurations.
    """
    output = beside.output
    require_outputs(output, ("record",), what="a table of estimates")
    require_apart(output, [file, *([Path(str(options.measured))] if options.measured is not None else [])])
    with progress_bar("estimating", quiet=json or not sys.stderr.isatty()) as bar:
        estimates = estimated(file, options, progress=lambda share: bar.show(share, "estimating"))
    deliver(estimates, output, json=json, text=partial(print_answer, estimates, shown))
    return 0 if any(row.refused is None for row in estimates) else 1


@dataclass(frozen=True, kw_only=True)
class FactorOptions(SourceOptions):
    """GPU and existing factors of a calibration."""

    gpu: str | None = option(
        kind="text",
        group="calibration",
        longest=4096,
        help="GPU to calibrate: a name, or a cluster file that describes your own.",
    )
    calibration: Path | None = option(
        kind="file", group="calibration", help="Existing calibration file to update, with --from."
    )


@command
def calibrate(model: str, /, *, options: CalibrationOptions, beside: FactorOptions, json: bool = False) -> int:
    """Calibrate the planner to a GPU, or to runs.

    Measures how much longer kernels, stages or steps take than the planner expects. Pass the file to `pipeplan plan` with
    `--calibration`.

    Parameters
    ----------
    model
        Model whose kernels are measured: a preset or a config.json. With --from: the file of the configuration that ran.
        Or a ledger of runs with their measured steps.
    """
    for path in beside.outputs:
        require_calibration_file(path)
        require_writable(path)
    reads = [path for path in (Path(model), beside.source) if path is not None and os.path.exists(path)]
    require_apart([path for path in beside.outputs if path != beside.calibration], reads)
    with progress_bar("starting up", quiet=json or beside.source is not None, refreshes=FEW_REFRESHES) as bar:
        factors = calibrated(
            model,
            options,
            gpu=beside.gpu,
            source=beside.source,
            calibration=beside.calibration,
            progress=lambda description, share: bar.show(share, description),
        )
    deliver(factors, beside.outputs, json=json)
    return 0
