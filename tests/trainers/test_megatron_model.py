"""Megatron-LM's flags for the shapes of published config files, and the parts that have no flag."""

import pytest

from pipeplan.trainers.megatron_model_plan import model_flags, model_warnings
from pipeplan.workload import read_config
from tests.workload.test_config_json import CONFIGS


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        (
            "DeepSeek-V3.2",
            {
                "--experimental-attention-variant dsa",
                "--dsa-indexer-n-heads 64",
                "--dsa-indexer-head-dim 128",
                "--dsa-indexer-topk 2048",
            },
        ),
        ("K-EXAONE-236B-A23B", {"--window-size '(127,0)'", "--window-attn-skip-freq 4"}),
        ("MiMo-V2-Flash", {f"--window-attn-skip-freq '({'+'.join(['[0]*1+[1]*4', *['[0]*1+[1]*5'] * 7, '[0]*1'])})'"}),
        ("GLM-4.7-Flash", {"--kv-channels 256", "--v-head-dim 256"}),
    ],
)
def test_flags(name: str, flags: set[str]) -> None:
    """Windows are 1 in their list; the size of a head must be set where the heads do not divide the width."""
    shape = read_config(CONFIGS / f"{name}.json")
    assert flags <= set(model_flags(shape))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Meta-Llama-3-70B", None),
        ("DeepSeek-V3", None),
        ("Llama-4-Scout-17B-16E", "windows in chunks"),
        ("OLMo-2-1124-7B", "norms over all heads of queries and keys"),
        ("Trinity-Mini", "4 norms per layer, gates of the attention's output"),
        ("gpt-oss-120b", "biases of experts"),
    ],
)
def test_parts_without_a_flag_are_named(name: str, parts: str | None) -> None:
    warnings = [*model_warnings(read_config(CONFIGS / f"{name}.json"))]
    assert [warning for warning in warnings if "has no flags" in warning] == [
        f"Megatron-LM has no flags for parts of {name} ({parts}): they need a layer specification (--spec)"
        for _ in range(parts is not None)
    ]
