"""``pipeplan plan``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, make_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from pipeplan import api
from pipeplan.api import require_outputs
from pipeplan.api.planning.planned import (
    NEEDED,
    PLAN_ENDINGS,
    PLAN_GROUPS,
    PLAN_SETTINGS,
    TRAINERS,
    Plan,
    require_release,
)
from pipeplan.api.planning.planned import plan as plan_for
from pipeplan.cli.answers import print_json, tell, written
from pipeplan.cli.options import OUTPUT, Debug, Json, LookOptions, option_of
from pipeplan.cli.plan_progress import ShareLine
from pipeplan.errors import InputError, UnknownNameError
from pipeplan.files import require_apart, require_writable

_GROUPS = {group: Group(title, sort_key=place) for place, (group, title) in enumerate(PLAN_GROUPS.items())}

_GivenPlan: Any = make_dataclass(
    "_GivenPlan",
    [(setting.name, option_of(setting, _GROUPS[setting.group]), None) for setting in PLAN_SETTINGS.values()],
    frozen=True,
    kw_only=True,
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PlanOptions(_GivenPlan):  # type: ignore[misc]
    """What is asked: a field for each setting of a plan, None where the command line does not say."""

    def given(self) -> dict[str, Any]:
        """What the command line gives, as keywords. Raises InputError where something is missing that nobody can choose."""
        said = {name: getattr(self, name) for name in PLAN_SETTINGS}
        missing = [f"--{name.replace('_', '-')}" for name in NEEDED if said[name] is None]
        if missing:
            raise InputError(
                f"a plan needs {', '.join(missing)}: pipeplan plan --model llama3-70b --cluster h100-sxm:8x8 "
                "--global-batch 128 --sequence 8192",
                field=missing[0].removeprefix("--").replace("-", "_"),
            )
        return {name: value for name, value in said.items() if value is not None}

    def files(self) -> list[Path]:
        """The files that are read for it, where they are files."""
        named = [self.model, self.cluster, self.calibration]
        return [path for path in map(Path, filter(None, named)) if os.path.isfile(path)]


_PLAN = PlanOptions()
_LOOK = LookOptions()


def _option(text: str, *names: str) -> Parameter:
    return Parameter(name=names, help=text, group=OUTPUT, show_default=False)


def plan(
    *,
    plan: PlanOptions = _PLAN,
    flags: Annotated[
        str | None,
        _option(
            f"Plan for this trainer and print its flags, with step time, memory and notes on stderr: {', '.join(TRAINERS)}.",
            "--flags",
        ),
    ] = None,
    trainer_version: Annotated[
        str | None,
        _option(
            "Release of the trainer of --flags, such as 0.19 of megatron or main of torchtitan (default: the newest known "
            "one that pip installs).",
            "--trainer-version",
        ),
    ] = None,
    models: Annotated[bool, _option("List the models that have a name.", "--models")] = False,
    gpus: Annotated[bool, _option("List the GPUs that have a name.", "--gpus", "--clusters")] = False,
    output: Annotated[
        tuple[Path, ...],
        _option(
            "The ending chooses: .json everything; .png .svg .pdf front, time and memory; .yaml the best configuration, for "
            "`pipeplan estimate`; .sh the flags; .html .csv .trace.json the schedule; .searched.csv "
            "a better order, where one was found; repeatable.",
            "--output",
            "-o",
        ),
    ] = (),
    look: LookOptions = _LOOK,
    json: Json = False,
    debug: Debug = False,
) -> int:
    """The configuration to train with: from a model, a cluster and a batch to degrees, schedule, layout and flags.

    Tries every legal combination of degrees, schedules, layouts and recomputation that no bound rules out, and says why the
    others lost, where time and memory go, what would change the choice, and how sure that is. Exits with 1 if nothing fits.
    Ctrl-C ends it with the best so far.
    """
    if models or gpus:
        return _lists(models=models, gpus=gpus, json=json)
    given = plan.given()
    if flags is not None and json:
        raise InputError("--flags prints the flags and nothing else: leave out --json, which holds them, too")
    if trainer_version is not None and flags is None:
        raise InputError("--trainer-version is of the flags of one trainer: add --flags", field="trainer_version")
    if flags is not None:
        given["fix"] = _for_trainer(flags, given.get("fix", ()))
        if trainer_version is not None:
            require_release(flags, trainer_version)
    _require(output, plan.files())
    with closing(ShareLine(quiet=json or flags is not None, task="planning")) as line:
        found = plan_for(progress=line.plan, **given)
    if found.best is None:
        return _nothing_fits(found, json=json)
    if flags is not None and trainer_version is not None:
        found = replace(found, versions={flags: trainer_version})
    writers = {path: partial(_write, found, flags, look) for path in output}
    with written(writers):
        if flags is not None:
            print(found.flags_for(flags).text)
            tell(found.summary)
            for note in filter(None, (found.unfinished, *found.chosen.assumed)):
                tell(f"note: {note}")
            for warning in found.flags_for(flags).warnings:
                tell(f"warning: {warning}")
        elif json:
            print_json(found.to_dict())
        else:
            found.print()
    return 0


def _for_trainer(flags: str, fix: tuple[str, ...]) -> tuple[str, ...]:
    """What is fixed where the flags of one trainer are wanted. Raises UnknownNameError for another name."""
    if flags not in TRAINERS:
        raise UnknownNameError("trainer", flags, TRAINERS, field="flags")
    return fix if any(pair.startswith("trainer=") for pair in fix) else (*fix, f"trainer={flags}")


def _lists(*, models: bool, gpus: bool, json: bool) -> int:
    found = [api.models()] * models + [api.gpus()] * gpus
    if json:
        print_json({name: value for each in found for name, value in each.to_dict().items()})
    else:
        for each in found:
            each.print()
    return 0


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


def _write(found: Plan, flags: str | None, look: LookOptions, path: Path) -> Sequence[Path]:
    ending = f".{flags}.sh" if flags is not None and path.suffix.lower() == ".sh" else None
    return found.save(path, ending=ending, **look.look)


def _nothing_fits(found: Plan, *, json: bool) -> int:
    if json:
        print_json(found.to_dict())
        tell(f"pipeplan: {found.miss}")
    else:
        found.print()
    return 1
