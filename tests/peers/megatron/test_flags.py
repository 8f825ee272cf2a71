"""Megatron-core's own configuration and layout parser, on the flags that we write."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from megatron.core import parallel_state
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.enums import LayerType
from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout
from megatron.core.transformer.transformer_block import get_num_layers_to_build

import pipeplan
from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.trainers import TrainerLayout, uneven_layers
from pipeplan.trainers.bridge import write_layout as write_list
from pipeplan.trainers.megatron_layout import read_string, write_layout
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


PIECES = (
    *("E", "Et*2", "t", "tt", "t*3", "(t|)*2", "(tt|t)*2", "(t*2|)*3", "m", "m*2", "L", "tL", "mL"),
    *("|", "|", "|", ",", "x", "*"),
)


@settings(max_examples=1500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join))
def test_a_string_is_read_as_megatron_reads_it(text: str):
    """Or refused, as it does; ours also refuses embeddings and losses that are not at the ends, and no layers."""
    try:
        stages = PipelineParallelLayerLayout.parse_str_to_list(text)
        parsed = PipelineParallelLayerLayout(text, len(stages))
        decoders, mtp = (sum(stage.count(kind) for stage in stages) for kind in (LayerType.decoder, LayerType.mtp))
        parsed.validate_layer_layout(decoders, mtp)
    except (AssertionError, IndexError):
        with pytest.raises(InputError):
            read_string(text)
        return
    if LayerType.embedding not in stages[0] or LayerType.loss not in stages[-1] or not decoders:
        with pytest.raises(InputError):
            read_string(text)
        return
    layout = read_string(text)
    assert list(layout.layers) == [stage.count(LayerType.decoder) for stage in stages]
    assert list(layout.mtp_of_stages) == [stage.count(LayerType.mtp) for stage in stages]
    for written in (write_layout(layout), python_list(layout)):
        again = PipelineParallelLayerLayout(written, len(stages))
        assert again.flatten_layout == parsed.flatten_layout
        assert again.layout == parsed.layout


def python_list(layout: TrainerLayout) -> list[list[str]]:
    found: list[list[str]] = eval(write_list(layout), {"__builtins__": {}})
    return found


DIVISIONS = [
    (layers, ranks, chunks, first, last, embedding, loss)
    for layers in (6, 8, 11, 12, 24)
    for ranks in (1, 2, 3, 4)
    for chunks in (1, 2)
    for first in (None, 2, 3)
    for last in (None, 2, 4)
    for embedding, loss in ((False, False), (True, False), (True, True))
]


def test_layers_are_divided_as_megatron_does(ran: Callable[[str], None]):
    """Without a layout, by its ``get_num_layers_to_build`` on the configuration that its rules accept."""
    divided = 0
    for layers, ranks, chunks, first, last, embedding, loss in DIVISIONS:
        if ranks == 1 and (chunks > 1 or first or last or embedding or loss):
            continue  # not a pipeline
        try:
            config = TransformerConfig(
                num_layers=layers,
                hidden_size=8,
                num_attention_heads=1,
                pipeline_dtype=torch.float64,
                pipeline_model_parallel_size=ranks,
                virtual_pipeline_model_parallel_size=chunks if chunks > 1 else None,
                num_layers_in_first_pipeline_stage=first,
                num_layers_in_last_pipeline_stage=last,
                account_for_embedding_in_pipeline_split=embedding,
                account_for_loss_in_pipeline_split=loss,
            )
            wanted = [
                get_num_layers_to_build(config, vp_stage=chunk if chunks > 1 else None, pp_rank=rank)
                for chunk in range(chunks)
                for rank in range(ranks)
            ]
            assert sum(wanted) == layers
            assert min(wanted) >= 0  # it takes 3 and 4 of 6 layers on three ranks, which leaves -1
        except (AssertionError, ValueError):
            with pytest.raises(ShapeError):
                uneven_layers(layers, ranks, chunks, first, last, embedding=embedding, loss=loss)
            continue
        assert list(uneven_layers(layers, ranks, chunks, first, last, embedding=embedding, loss=loss)) == wanted
        divided += 1
    ran(f"its strings as ours, and its layers of each stage in {divided} divisions")


def test_what_megatron_refuses_beside_a_layout_is_named():
    """Its trainer names the numbers of layers ``--decoder-first-pipeline-num-layers`` and ``-last-``."""
    text = laid_out()
    named = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")
    for name in (*named, "num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage"):
        assert f"--{name.replace('_', '-')}" in unwrapped(text) or name not in named
        with pytest.raises(ValueError, match="cannot be set with other pipeline layout arguments"):
            configured(text, **{name: True if name in named else 1})


NOT_OVERLAPPED: dict[str, dict[str, Any]] = {
    "mixture of experts": {"num_moe_experts": None},
    "--expert-model-parallel-size >= 2": {"expert_model_parallel_size": 1},
    "--moe-token-dispatcher-type alltoall or flex": {"moe_token_dispatcher_type": "allgather"},
    "--bf16 or --fp16": {"bf16": False},
    "--moe-shared-expert-overlap": {"moe_shared_expert_overlap": True, "moe_shared_expert_intermediate_size": 8},
    "--recompute-granularity full": {
        "recompute_granularity": "full",
        "recompute_method": "uniform",
        "recompute_num_layers": 1,
    },
    "--recompute-num-layers": {"recompute_num_layers": 1},
    "--recompute-method": {"recompute_method": "uniform"},
}
"""What overlapped pairs need or exclude, as the text says it, and arguments with which Megatron refuses them."""


@pytest.mark.parametrize("words", NOT_OVERLAPPED)
def test_what_overlapped_pairs_need_and_exclude_is_said(words: str):
    text = overlapped()
    assert configured(text).config.overlap_moe_expert_parallel_comm
    assert words in unwrapped(text)
    assert MIXTURE_OF_EXPERTS.keys() <= {name for arguments in NOT_OVERLAPPED.values() for name in arguments}
    with pytest.raises((AssertionError, ValueError)):
        configured(text, **NOT_OVERLAPPED[words])


def test_delayed_weights_exclude_the_legacy_experts_before_0_17():
    text = overlapped(split_backward=True)
    config = configured(text).config
    assert config.delay_wgrad_compute
    assert "before Megatron-core 0.17, excludes --moe-use-legacy-grouped-gemm" in unwrapped(text)
    if hasattr(config, "moe_use_legacy_grouped_gemm"):
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
    with pytest.raises(SystemExit):
        configured(laid_out().replace("--num-layers", "--number-of-layers"))


def unwrapped(text: str) -> str:
    """The comments as sentences."""
    return re.sub(r"\n#\s+", " ", text)
