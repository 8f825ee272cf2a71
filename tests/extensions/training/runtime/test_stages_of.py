"""Which stages a rank builds, before and within a job."""

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.distributed as dist

import pipeplan
from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.runtime import stages_of
from pipeplan.strategies import strategy


@pytest.mark.parametrize(
    ("schedule", "options", "stages"),
    [
        ("1f1b", {"ranks": 4}, [(0,), (1,), (2,), (3,)]),
        ("zbv", {"ranks": 2}, [(0, 3), (1, 2)]),
        (strategy("interleaved-1f1b"), {"ranks": 2, "chunks": 3}, [(0, 2, 4), (1, 3, 5)]),
        (pipeplan.simulate("v-half", ranks=2), {}, [(0, 3), (1, 2)]),
        (pipeplan.simulate("1f1b", ranks=2).schedule, {"ranks": 2}, [(0,), (1,)]),
    ],
)
def test_each_rank_has_its_stages(schedule, options, stages):
    assert [stages_of(schedule, rank, **options) for rank in range(len(stages))] == stages


def test_a_file_is_a_schedule_too(tmp_path: Path) -> None:
    path = tmp_path / "order.csv"
    pipeplan.simulate("zbv", ranks=2, microbatches=4).save(path)
    assert stages_of(path, 0) == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("1f1b", 0), {}, InputError, r"ranks is required before init_process_group: stages_of\(schedule, ranks=...\)"),
        (
            ("1f1b",),
            {"ranks": 2},
            InputError,
            r"rank is required before init_process_group: stages_of\(schedule, rank=",
        ),
        (("1f1b", 2), {"ranks": 2}, ShapeError, "there is no rank 2: the ranks are 0 to 1"),
        ((pipeplan.simulate("1f1b", ranks=2), 0), {"ranks": 4}, ShapeError, "1f1b has 2 ranks, not 4"),
    ],
)
def test_what_cannot_be(arguments, options, error, message):
    with pytest.raises(error, match=message):
        stages_of(*arguments, **options)


def test_within_a_job_the_process_is_the_rank() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert stages_of("zbv") == (0, 1)
        assert stages_of("1f1b", ranks=2) == (0,)
    finally:
        dist.destroy_process_group()
