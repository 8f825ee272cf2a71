"""Schedules as settings of Megatron-Bridge, NeMo AutoModel and Primus; the trainers themselves run in ``tests/peers``."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

import pipeplan
from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.strategies import STRATEGIES
from pipeplan.trainers.primus import ALGORITHMS


def exported(name: str, to: str, **options: Any) -> Any:
    text = pipeplan.export(name, to=to, **options).text
    return yaml.safe_load(text)


def scheduled(name: str, **options: Any) -> SimpleNamespace:
    """A configuration as the exported function returns it, of a recipe that recomputes in full."""
    text = pipeplan.export(name, to="megatron-bridge", **options).text
    body = "\n".join(line for line in text.splitlines() if "import" not in line)
    names: dict[str, Any] = {"CommOverlapConfig": SimpleNamespace}
    exec(compile(ast.parse(body), "export", "exec"), names)
    model = SimpleNamespace(num_layers=7, recompute_granularity="full", recompute_method="uniform")
    cfg = SimpleNamespace(model=model, train=SimpleNamespace(), dataset=SimpleNamespace(), comm_overlap=None)
    answer: SimpleNamespace = names["scheduled"](cfg)
    return answer


@pytest.mark.parametrize("ranks", [2, 4])
def test_bridge_does_not_batch_interleaved_messages(ranks: int):
    cfg = scheduled("interleaved-1f1b", ranks=ranks, microbatches=8, chunks=2, data_parallel=3)
    assert (cfg.comm_overlap.overlap_p2p_comm, cfg.comm_overlap.batch_p2p_comm) == (True, False)
    assert (cfg.model.virtual_pipeline_model_parallel_size, cfg.model.microbatch_group_size_per_vp_stage) == (2, ranks)
    assert cfg.model.pipeline_model_parallel_layout is None
    assert cfg.model.recompute_granularity is None
    assert (cfg.train.micro_batch_size, cfg.train.global_batch_size) == (1, 24)


def test_bridge_has_the_layout_and_the_recomputation():
    cfg = scheduled("1f1b", ranks=2, microbatches=4, layers_per_stage=(3, 4), mtp_layers=1, recompute="all")
    assert cfg.model.pipeline_model_parallel_layout == [
        ["embedding", "decoder", "decoder", "decoder"],
        ["decoder", "decoder", "decoder", "decoder", "mtp", "loss"],
    ]
    assert (cfg.model.recompute_granularity, cfg.model.recompute_num_layers, cfg.model.mtp_num_layers) == ("full", 1, 1)
    assert (cfg.comm_overlap.overlap_p2p_comm, cfg.comm_overlap.batch_p2p_comm) == (False, True)
    with pytest.raises(AssertionError, match="another model"):
        scheduled("1f1b", ranks=2, microbatches=4, layers_per_stage=(3, 3))


def test_automodel_has_the_batch_and_the_modules():
    shape: dict[str, Any] = {"ranks": 2, "microbatches": 6, "microbatch_size": 2, "data_parallel": 4}
    keys = exported("zb-h1", "automodel", layers_per_stage=(1, 2), csv="/orders/plan.csv", **shape)
    assert keys["step_scheduler"] == {"local_batch_size": 12, "global_batch_size": 48}
    assert keys["distributed"] == {
        "strategy": "fsdp2",
        "pp_size": 2,
        "dp_size": 4,
        "activation_checkpointing": False,
        "pipeline": {
            "pp_schedule": "1F1B",
            "pp_schedule_csv": "/orders/plan.csv",
            "pp_microbatch_size": 2,
            "module_fqns_per_model_part": [
                ["model.embed_tokens", "model.layers.0", "model.rotary_emb"],
                ["model.layers.1", "model.layers.2", "model.norm", "lm_head", "model.rotary_emb"],
            ],
        },
    }
    assert exported("1f1b", "automodel", recompute="all", **shape)["distributed"]["activation_checkpointing"] is True


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("1f1b", {"ranks": 4, "microbatches": 3}, "3 microbatches are too few: NeMo AutoModel needs at least 4"),
        ("chimera", {"ranks": 4, "microbatches": 4}, "NeMo AutoModel supports stages in a line, in a loop or on a V"),
        ("interleaved-1f1b", {"ranks": 2, "microbatches": 4, "chunks": 3}, "NeMo AutoModel builds 2 stages per rank"),
        ("1f1b", {"ranks": 2, "microbatches": 4, "mtp_layers": 1}, "NeMo AutoModel's pipelines do not support"),
        ("1f1b", {"ranks": 2, "microbatches": 4, "trainer_version": "0.2"}, "unsupported nemo-automodel 0.2"),
    ],
)
def test_what_automodel_cannot_run_is_refused(name: str, shape: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        pipeplan.export(name, to="automodel", **shape)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("ranks", [2, 4])
def test_primus_orders_zero_bubble_itself_from_some_microbatches_on(name: str, ranks: int):
    algorithm, least = ALGORITHMS[name]
    keys = exported(name, "primus", ranks=ranks, microbatches=least(ranks))
    overrides = keys["modules"]["pre_trainer"]["overrides"]
    assert (overrides["patch_primus_pipeline"], overrides["pp_algorithm"]) == (True, algorithm)
    assert overrides.get("num_virtual_stages_per_pipeline_rank", 1) == STRATEGIES[name].shape(ranks, 8).chunks
    if least(ranks) > 2:
        with pytest.raises(ShapeError, match=f"{name} from {least(ranks)}"):
            pipeplan.export(name, to="primus", ranks=ranks, microbatches=least(ranks) - 1)


def test_primus_runs_megatron_s_orders():
    shape: dict[str, Any] = {"ranks": 2, "microbatches": 4, "chunks": 2, "sequence_length": 4096}
    keys = exported("interleaved-1f1b", "primus", layers_per_stage=(1, 2, 2, 1), **shape)
    overrides = keys["modules"]["pre_trainer"]["overrides"]
    assert overrides == {
        "pipeline_model_parallel_size": 2,
        "micro_batch_size": 1,
        "global_batch_size": 4,
        "seq_length": 4096,
        "num_layers": 6,
        "pipeline_model_parallel_layout": "Et|t*2|t*2|tL",
        "patch_primus_pipeline": False,
        "microbatch_group_size_per_vp_stage": 2,
        "overlap_p2p_comm": True,
    }
    with pytest.raises(ShapeError, match="Primus runs Megatron-LM's orders and its own"):
        pipeplan.export("gpipe", to="primus", ranks=2, microbatches=4)


@pytest.mark.parametrize("to", ["automodel", "megatron", "megatron-bridge", "primus"])
def test_a_file_has_the_ending_of_its_language(to: str, tmp_path: Any):
    endings = {"megatron": "sh", "megatron-bridge": "py"}
    export = pipeplan.export("1f1b", to=to, ranks=2, microbatches=2)
    path = tmp_path / f"plan.{endings.get(to, 'yaml')}"
    export.save(path)
    assert path.read_text().startswith("#")
    with pytest.raises(InputError, match=r"is not written to a \.json file"):
        export.save(tmp_path / "plan.json")
