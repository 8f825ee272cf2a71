"""What we export, read by torchtitan's own ConfigManager."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torchtitan.config import ConfigManager, ParallelismConfig, TrainingConfig

from pipeplan.formats import Training
from tests.peers.torchtitan.exports import Case, exported, layout, published, words

CASES = [
    Case(schedule, layout(schedule.stages, 16, random.Random(schedule.stages)), size)
    for ranks, microbatches, chunks, size in ((2, 4, None, 1), (4, 9, None, 2), (3, 6, 3, 3))
    for schedule in published(ranks, microbatches, chunks)
]


def parsed(text: str) -> Any:
    return ConfigManager().parse_args(["--module", "tests.peers.torchtitan.debug", "--config", "debug", *words(text)])


def test_flags_and_python_say_the_same(tmp_path: Path, ran: Callable[[str], None]):
    for case in CASES:
        said = Training(sequence_length=64, data_parallel=2)
        config = parsed(exported(case, tmp_path, training=said))
        tables: dict[str, Any] = {}
        exec(exported(case, tmp_path, to="torchtitan-python", training=said), tables)
        assert config.parallelism == ParallelismConfig(**tables["PARALLELISM"])
        assert config.training == TrainingConfig(**tables["TRAINING"])
        batch = case.schedule.microbatches * case.microbatch_size
        assert config.training == TrainingConfig(
            local_batch_size=batch, global_batch_size=2 * batch, seq_len=64, disable_cuda_graphs=True
        )
    ran(f"its parser on the flags of {len(CASES)} exports")


def test_the_main_branch_has_other_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    text = exported(CASES[0], tmp_path, training=Training(trainer_version="main", sequence_length=64))
    with pytest.raises(SystemExit):
        parsed(text)
    said = capsys.readouterr()
    assert "Unrecognized options" in said.out + said.err
