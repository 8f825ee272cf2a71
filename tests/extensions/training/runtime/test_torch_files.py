"""Our CSV files with communication in PyTorch's own reader, and PyTorch's in ours, over the installed release."""

from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch.distributed.pipelining.schedules import (
    _format_pipeline_order,
    _PipelineScheduleRuntime,
    get_schedule_class,
)

import pipeplan
from pipeplan.checking import check
from pipeplan.extensions.training.runtime import torch_internals
from pipeplan.formats import TORCH_RELEASES, has_waits, torch_release
from pipeplan.formats.pytorch_csv import torch_csv_comms
from pipeplan.foundation.errors import PipeplanError
from pipeplan.model import Schedule, parse_schedule
from pipeplan.strategies import STRATEGIES
from tests.extensions.training.runtime.torch_schedules import from_torch, stand_in

NEEDS_WAITS = has_waits(torch_release())
OTHER_FORM = next(release for release in reversed(TORCH_RELEASES) if has_waits(release) != NEEDS_WAITS)


def runtime_for(schedule: Schedule, cls: Any = _PipelineScheduleRuntime, **options: Any) -> Any:
    """Return PyTorch's runtime of rank 0, over stand-ins for its stages."""
    stages = [stand_in(stage, schedule.ranks, schedule.stages) for stage in schedule.placement.stages_on(0)]
    return cls(stages, schedule.microbatches, loss_fn=lambda *_: None, **options)


def exported() -> list[tuple[str, Schedule, str]]:
    """Return every schedule that PyTorch can express, in a few shapes, with its file for the installed release."""
    cases = []
    for name in STRATEGIES:
        for ranks, microbatches in ((2, 4), (3, 6), (4, 8)):
            try:
                schedule = pipeplan.simulate(name, ranks=ranks, microbatches=microbatches).schedule
                text = torch_csv_comms(schedule)
            except PipeplanError:
                continue
            cases.append((f"{name} {ranks} {microbatches}", schedule, text))
    return cases


def test_pytorch_reads_every_file(tmp_path: Path) -> None:
    cases = exported()
    assert len(cases) > 40
    for name, schedule, text in cases:
        path = tmp_path / f"{name}.comms.csv"
        path.write_text(text)
        live = runtime_for(schedule)
        live._load_csv(str(path), format="compute_comms")
        order = live.pipeline_order_with_comms
        rows = [list(map(str, order[rank])) for rank in range(schedule.ranks)]
        assert rows == [line.split(",") for line in text.splitlines()], name
        assert pipeplan.check(path, trainer="pytorch").valid, name


def test_pytorch_refuses_the_form_of_other_releases_and_so_does_check(tmp_path: Path) -> None:
    path = tmp_path / "other.comms.csv"
    schedule = pipeplan.simulate("1f1b", ranks=2, microbatches=4).schedule
    path.write_text(torch_csv_comms(schedule, OTHER_FORM))
    with pytest.raises((ValueError, AssertionError)):
        runtime_for(schedule)._load_csv(str(path), format="compute_comms")
    assert {problem.rule for problem in pipeplan.check(path, trainer="pytorch").problems} == {"wait"}
    assert pipeplan.check(path, trainer="pytorch", trainer_version=OTHER_FORM).valid
    assert pipeplan.check(path).valid


HOSTILE = {
    "a loss that is not there yet": "0F0,0F1,0B1,0B0\n1F1,1B1,1F0,1B0\n",
    "losses out of order": "0F1,0F0,0B1,0B0\n1F1,1F0,1B1,1B0\n",
    "two copies": "0F0,1F1,1B1,0B0\n1F0,0F1,1B0,0B1\n",
    "no backward": "0F0,0F1,0B0\n1F0,1B0,1F1\n",
    "half a backward": "0F0,0F1,0I0,0B1\n1F0,1B0,1F1,1B1\n",
    "deadlock": "0F0,0B0,0F1,0B1\n1F1,1F0,1B1,1B0\n",
    "stage-wide ops without messages": "0UNSHARD,0F0,0B0,0REDUCE_GRAD,0RESHARD\n1UNSHARD,1F0,1B0,1REDUCE_GRAD,1RESHARD\n",
    "blank cell": "0F0,0SEND_F0,,0RECV_B0,0B0,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD\n",
    "no reduction": "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
    "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n",
    "never freed": "0UNSHARD,0F0,0B0,0REDUCE_GRAD\n",
    "gathered in vain": "0UNSHARD,0RESHARD,0UNSHARD,0F0,0B0,0RESHARD,0REDUCE_GRAD\n",
}
"""Files of PyTorch's format that it refuses or trains wrongly."""

TRAINED_WRONGLY = {
    "a loss that is not there yet",
    "losses out of order",
    "no reduction",
    "never freed",
    "gathered in vain",
}
"""Those that PyTorch reads; see test_trained_by_csv, and for sharded stages ``_PipelineScheduleRuntime``."""


@pytest.mark.parametrize("name", HOSTILE)
def test_check_refuses_what_pytorch_refuses_or_trains_wrongly(name: str, tmp_path: Path) -> None:
    path, text = tmp_path / "hostile.csv", HOSTILE[name]
    path.write_text(text)
    assert not any(pipeplan.check(path, trainer=trainer).valid for trainer in (None, "pytorch", "torchtitan"))
    ranks, microbatches = text.count("\n"), 1 + ("F1" in text)
    stages = [stand_in(0, ranks, ranks)]
    live = _PipelineScheduleRuntime(stages, microbatches, loss_fn=lambda *_: None)
    form = "compute_comms" if "SEND" in text or ranks == 1 else "compute_only"
    if name in TRAINED_WRONGLY:
        live._load_csv(str(path), format=form)
    else:
        with pytest.raises((AssertionError, ValueError)):
            live._load_csv(str(path), format=form)


@pytest.mark.parametrize("ahead", [1, 2, 3])
@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_check_names_the_backward_whose_loss_pytorch_does_not_have(order: tuple[int, ...], ahead: int) -> None:
    """Forwards run in this order, each ``ahead`` of them before the first backward."""
    steps = [(kind, step - late) for step in range(3 + ahead) for kind, late in (("F", 0), ("B", ahead))]
    ops = [f"0{kind}{order[place]}" for kind, place in steps if 0 <= place < 3]
    live = _PipelineScheduleRuntime([stand_in(0, 1, 1)], 3, loss_fn=lambda *_: torch.zeros(()))
    last, stops = SimpleNamespace(is_last=True), list[str]()
    for op in ops:
        if "F" in op:
            live._maybe_compute_loss(last, None, [None] * 3, int(op[-1]))
            continue
        try:
            live._maybe_get_loss(last, int(op[-1]))
        except RuntimeError:
            stops = [f"rank 0, op {ops.index(op)} ({op})"]
            break
    problems = check(parse_schedule(" ".join(ops)), pytorch=True).problems
    assert [problem.where for problem in problems if "is not available" in problem.message] == stops


@pytest.mark.parametrize(
    "name", ["LoopedBFS", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"]
)
def test_files_of_pytorch_are_read(name: str, tmp_path: Path) -> None:
    """Among them, with a wait for each send and for each reduction, those of PyTorch 2.15."""
    path = tmp_path / "theirs.comms.csv"
    shape = pipeplan.simulate("zbv" if "V" in name else "interleaved-1f1b", ranks=2, microbatches=6).schedule
    live = runtime_for(shape, get_schedule_class(name))
    live._prepare_schedule_with_comms(live.pipeline_order)
    live._dump_csv(str(path), format="compute_comms")
    theirs = pipeplan.read_schedule(path)
    assert check(theirs, waits=NEEDS_WAITS).valid
    assert torch_csv_comms(theirs) == path.read_text().replace("\r\n", "\n")
    assert pipeplan.read_schedule(path) == from_torch(live, communication=True)
    printed = tmp_path / "printed.txt"
    for order in (live.pipeline_order, live.pipeline_order_with_comms):
        printed.write_text(_format_pipeline_order(order, error_step_number=1))
        rows = pipeplan.read_schedule(printed)
        assert [[str(op) for op in row] for row in rows] == [
            [str(sub) for action in order[rank] if action is not None for sub in action.sub_actions or (action,)]
            for rank in range(2)
        ]


@pytest.mark.skipif(not NEEDS_WAITS, reason=f"PyTorch {torch_release()} has no ops that wait: they came with 2.15")
def test_waits_are_where_pytorch_puts_them() -> None:
    from torch.distributed.pipelining.schedules import _add_wait_send, _validate_send_waits

    for name, _, text in exported():
        lowered = pipeplan.formats.parse_torch_csv(text)
        bare = pipeplan.passes.without_waits(lowered)
        theirs = _add_wait_send({rank: torch_internals.actions_of(row) for rank, row in enumerate(bare)})
        ours = {
            rank: [action for action in torch_internals.actions_of(row) if "WAIT_REDUCE" not in str(action)]
            for rank, row in enumerate(lowered)
        }
        assert ours == theirs, name
        _validate_send_waits(ours)
