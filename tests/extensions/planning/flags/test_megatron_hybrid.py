"""Megatron-LM's pattern of layers for hybrid models."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import pipeplan
from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.flags.megatron_hybrid import hybrid_pattern, is_hybrid, missing_symbols
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.trainers import flags_of
from tests.extensions.planning.workload.test_config_json import CONFIGS, shape_of


@pytest.mark.parametrize(
    ("name", "stages", "pattern"),
    [
        (
            "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
            (26, 26),
            "MEMEM*EMEMEM*EMEMEM*EMEMEM|*EMEMEM*EMEMEMEM*EMEMEMEME",
        ),
        ("Qwen3-Next-80B-A3B-Instruct", (24, 24), "|".join(["GEGEGE*E" * 6] * 2)),
        ("NVIDIA-Nemotron-3-Super-120B-A12B-BF16", (88,), None),
    ],
)
def test_patterns(name: str, stages: tuple[int, ...], pattern: str | None):
    """Nemotron's are those of its own config file, with the ends of stages, and the layers of MTP behind a slash."""
    shape = shape_of(name)
    assert is_hybrid(shape)
    assert not list(missing_symbols(shape))
    if pattern is None:
        pattern = "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME/*E/*E"
    assert hybrid_pattern(shape, stages) == pattern


EIGHT = Configuration(sequence=4096, global_batch=32, pipeline=2, data=4)


@pytest.mark.parametrize(
    ("name", "release", "words"),
    [
        ("Kimi-Linear-48B-A3B-Base", None, "has no symbol for Kimi Delta Attention"),
        ("NVIDIA-Nemotron-Nano-9B-v2", "0.16", "Megatron-core 0.16 cannot divide the different layers"),
        ("DeepSeek-V3.2", "0.15", "it has no --experimental-attention-variant, which needs 0.16 or later"),
    ],
)
def test_what_no_release_or_not_this_one_can_build_is_refused(name: str, release: str | None, words: str):
    versions = {} if release is None else {"megatron": release}
    result = flags_of(shape_of(name), cluster("h100-sxm:8x1"), EIGHT, versions=versions)["megatron"]
    assert words in result.text
    assert len(result.text.splitlines()) == 1


def test_a_replaced_schedule_has_its_own_stages():
    shape = shape_of("NVIDIA-Nemotron-Nano-9B-v2")
    other = replace(EIGHT, schedule="zbv", chunks=2)
    result = flags_of(shape, cluster("h100-sxm:8x1"), other)["megatron"]
    (pattern,) = re.findall(r"--hybrid-layer-pattern '([^']*)'", result.text)
    assert pattern.count("|") == 1
    assert "these flags run 1f1b instead" in result.warnings[0]


def test_the_script_of_a_plan(tmp_path: Path):
    result = pipeplan.plan(
        CONFIGS / "NVIDIA-Nemotron-Nano-9B-v2.json",
        "h100-sxm:8x1",
        global_batch=32,
        sequence=4096,
        seconds=2,
        workers=1,
        fix={"pp": 2, "tp": 1, "trainer": "megatron"},
    )
    assert result.best is not None
    script = result.best.flags["megatron"].text
    assert '"$MEGATRON/pretrain_hybrid.py"' in script
    (pattern,) = re.findall(r"--hybrid-layer-pattern '([^']*)'", script)
    assert pattern.replace("|", "") == "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"
    assert pattern.count("|") % 2 == 1
    assert "--position-embedding-type none" in script
    assert "--squared-relu" in script
    assert "--num-layers" not in script
    assert "--pipeline-model-parallel-layout" not in script
