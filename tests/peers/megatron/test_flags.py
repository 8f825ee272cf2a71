"""Megatron-core's own configuration and layout parser, on the flags that we write."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from megatron.core import parallel_state
from megatron.core.transformer.enums import LayerType

import pipeplan
from tests.peers.megatron.flags import MIXTURE_OF_EXPERTS, configured


def overlapped(**more: Any) -> str:
    return str(pipeplan.export("interleaved-1f1b-overlap", to="megatron", ranks=2, microbatches=4, chunks=2, **more))


def laid_out() -> str:
    return str(pipeplan.export("1f1b", to="megatron", ranks=2, microbatches=4, layers_per_stage=(1, 3)))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_layout_has_the_layers_that_we_meant(data: st.DataObject):
    ranks, chunks = data.draw(st.integers(1, 5), "ranks"), data.draw(st.integers(1, 4), "chunks")
    chunks = chunks if ranks > 1 else 1
    stages = ranks * chunks
    layers = data.draw(st.lists(st.integers(0, 12), min_size=stages, max_size=stages).filter(any), "layers")
    further = data.draw(st.integers(0, 3), "mtp_layers")
    text = pipeplan.export(
        "1f1b" if chunks == 1 else "interleaved-1f1b",
        to="megatron",
        ranks=ranks,
        microbatches=2 * ranks,
        chunks=chunks,
        layers_per_stage=tuple(layers),
        mtp_layers=further,
    ).text
    config = configured(text).config
    layout = config.pipeline_model_parallel_layout
    assert config.virtual_pipeline_model_parallel_size == (chunks if chunks > 1 else None)
    assert not config.mtp_standalone
    ids = []
    for stage, count in enumerate(layers):
        chunk, rank = divmod(stage, ranks)
        held = layout.layout[rank][chunk]
        assert held.count(LayerType.decoder) == count
        assert held.count(LayerType.embedding) == (stage == 0)
        assert held.count(LayerType.loss) == (stage == stages - 1)
        assert held.count(LayerType.mtp) == further * (stage == stages - 1)
        parallel_state.set_virtual_pipeline_model_parallel_world_size(config.virtual_pipeline_model_parallel_size)
        ids += layout.get_layer_id_list(LayerType.decoder, chunk, rank)
    assert ids == list(range(sum(layers)))


@pytest.mark.parametrize("flag", ["num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage"])
def test_megatron_takes_no_number_of_layers_beside_a_layout(flag: str):
    """Its trainer names these two flags ``--decoder-first-pipeline-num-layers`` and ``-last-``."""
    text = laid_out()
    with pytest.raises(ValueError, match="cannot be set with other pipeline layout arguments"):
        configured(text, **{flag: 1})


def test_what_megatron_refuses_beside_a_layout_is_named():
    text = laid_out()
    for name in ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"):
        assert f"--{name.replace('_', '-')}" in unwrapped(text)
        with pytest.raises(ValueError, match="cannot be set with other pipeline layout arguments"):
            configured(text, **{name: True})


NEEDED: dict[str, tuple[Any, str]] = {
    "num_moe_experts": (None, "mixture of experts"),
    "expert_model_parallel_size": (1, "--expert-model-parallel-size >= 2"),
    "moe_token_dispatcher_type": ("allgather", "--moe-token-dispatcher-type alltoall or flex"),
    "bf16": (False, "--bf16 or --fp16"),
}


@pytest.mark.parametrize("name", NEEDED)
def test_what_overlapped_pairs_need_is_said(name: str):
    without, sentence = NEEDED[name]
    text = overlapped()
    assert NEEDED.keys() == MIXTURE_OF_EXPERTS.keys()
    assert configured(text).config.overlap_moe_expert_parallel_comm
    assert sentence in unwrapped(text)
    with pytest.raises((AssertionError, ValueError)):
        configured(text, **{name: without})


EXCLUDED: dict[str, dict[str, Any]] = {
    "--moe-shared-expert-overlap": {"moe_shared_expert_overlap": True, "moe_shared_expert_intermediate_size": 8},
    "--recompute-granularity full": {
        "recompute_granularity": "full",
        "recompute_method": "uniform",
        "recompute_num_layers": 1,
    },
    "--recompute-num-layers": {"recompute_num_layers": 1},
    "--recompute-method": {"recompute_method": "uniform"},
}


@pytest.mark.parametrize("flag", EXCLUDED)
def test_what_overlapped_pairs_exclude_is_said(flag: str):
    text = overlapped()
    assert flag in unwrapped(text)
    with pytest.raises((AssertionError, ValueError)):
        configured(text, **EXCLUDED[flag])


def test_delayed_weights_exclude_the_legacy_experts():
    text = overlapped(split_backward=True)
    assert configured(text).config.delay_wgrad_compute
    assert "--moe-use-legacy-grouped-gemm" in unwrapped(text)
    with pytest.raises(AssertionError, match="legacy"):
        configured(text, moe_use_legacy_grouped_gemm=True)
    with pytest.raises(AssertionError, match="must be enabled"):
        configured(text.replace("--overlap-moe-expert-parallel-comm", ""))


def test_two_layers_of_further_tokens_do_not_overlap():
    text = overlapped(mtp_layers=1)
    with pytest.raises(AssertionError, match="MTP"):
        configured(text.replace("--mtp-num-layers 1", "--mtp-num-layers 2"), num_layers=4)


def test_full_recomputation_is_accepted(ran: Callable[[str], None]):
    config = configured(pipeplan.export("1f1b", to="megatron", ranks=2, microbatches=2, recompute="all").text).config
    assert (config.recompute_granularity, config.recompute_method, config.recompute_num_layers) == (
        "full",
        "uniform",
        1,
    )
    ran("flags by its configuration, layouts by its parser")


def test_a_flag_that_no_field_has_is_refused():
    text = laid_out().replace("--num-layers", "--number-of-layers")
    with pytest.raises(SystemExit):
        configured(text)


def unwrapped(text: str) -> str:
    """The comments as sentences."""
    return re.sub(r"\n#\s+", " ", text)
