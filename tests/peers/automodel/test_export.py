"""The keys of a recipe, parsed by Automodel, and the pipeline that it builds of a model from Hugging Face with them."""

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import yaml
from nemo_automodel.components.distributed.pipelining.autopipeline import AutoPipeline
from nemo_automodel.components.training.step_scheduler import StepScheduler
from nemo_automodel.recipes._dist_utils import parse_distributed_section
from transformers import LlamaConfig, LlamaForCausalLM

from pipeplan.formats import Training
from pipeplan.passes import insert_recompute
from pipeplan.strategies import STRATEGIES
from pipeplan.trainers.automodel import automodel_settings
from tests.extensions.training.runtime.torch_schedules import from_torch
from tests.peers.stand_ins import ranks_of
from tests.peers.torchtitan.exports import Case, layout, published

LAYERS, REPLICAS = 9, 3

CASES = [
    Case(schedule, layout(schedule.stages, LAYERS, random.Random(schedule.stages)), size)
    for ranks, microbatches, chunks, size in ((2, 4, None, 1), (3, 7, None, 2), (2, 4, 3, 1))
    for schedule in published(ranks, microbatches, chunks)
]


def document(case: Case, folder: Path) -> Any:
    """The keys of a recipe, with the CSV that they name in a folder."""
    training = Training(
        layers=case.layers,
        microbatch_size=case.microbatch_size,
        data_parallel=REPLICAS,
        csv=str(folder / "plan.csv"),
    )
    settings = automodel_settings(case.schedule, training)
    for path, text in settings.files.items():
        Path(path).write_text(text)
    return yaml.safe_load(settings.text)


def parsed(keys: Any) -> dict[str, Any]:
    """What Automodel makes of the keys."""
    section = parse_distributed_section(keys["distributed"])
    pipeline, batch = section["pipeline_config"], keys["step_scheduler"]
    scheduler = StepScheduler(**batch, dp_size=section["dp_size"], dataloader=None, num_epochs=1, max_steps=1)
    return {
        "strategy": type(section["strategy_config"]).__name__,
        "recomputes": section["activation_checkpointing"],
        "ranks": section["pp_size"],
        "replicas": section["dp_size"],
        "schedule": pipeline.pp_schedule,
        "order": Path(pipeline.pp_schedule_csv).read_text(),
        "parts": pipeline.module_fqns_per_model_part,
        "microbatches": batch["local_batch_size"] / pipeline.pp_microbatch_size,
        "microbatch size": pipeline.pp_microbatch_size,
        "accumulated": scheduler.grad_acc_steps,
    }


NAMES = {"linear": "1F1B", "loop": "Interleaved1F1B", "v": "ZBVZeroBubble"}


def wanted(case: Case, order: str, *, recomputes: bool = False) -> dict[str, Any]:
    schedule = case.schedule
    parts = None
    if case.layers is not None:
        numbers = iter(range(LAYERS))
        parts = [[f"model.layers.{next(numbers)}" for _ in range(count)] for count in case.layers]
        parts = [["model.embed_tokens", *parts[0]], *parts[1:-1], [*parts[-1], "model.norm", "lm_head"]]
        parts = [[*part, "model.rotary_emb"] for part in parts]
    return {
        "strategy": "FSDP2Config",
        "recomputes": recomputes,
        "ranks": schedule.ranks,
        "replicas": REPLICAS,
        "schedule": NAMES[schedule.placement.name],
        "order": order,
        "parts": parts,
        "microbatches": schedule.microbatches,
        "microbatch size": case.microbatch_size,
        "accumulated": 1,
    }


def test_every_value_is_the_planned_one(tmp_path: Path, ran: Callable[[str], None]):
    for case in CASES:
        keys = document(case, tmp_path)
        assert parsed(keys) == wanted(case, (tmp_path / "plan.csv").read_text())
    recomputed = Case(insert_recompute(CASES[0].schedule), CASES[0].layers)
    assert parsed(document(recomputed, tmp_path))["recomputes"] is True
    ran(f"its parser on the keys of {len(CASES)} exports")


def leaves(keys: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = enumerate(keys) if isinstance(keys, list) else keys.items() if isinstance(keys, dict) else None
    if entries is None:
        yield path
        return
    for name, value in entries:
        yield from leaves(value, (*path, name))


def test_every_planted_value_is_found(tmp_path: Path, ran: Callable[[str], None]):
    case = CASES[0]
    keys = document(case, tmp_path)
    right = wanted(case, (tmp_path / "plan.csv").read_text())
    (tmp_path / "plan.csvx").write_text("0F0\n")
    count = 0
    for path in leaves(keys):
        changed = deepcopy(keys)
        place = changed
        for name in path[:-1]:
            place = place[name]
        value = place[path[-1]]
        place[path[-1]] = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else f"{value}x"
        count += 1
        with suppress(ValueError):  # refused
            assert parsed(changed) != right, path
    ran(f"{count} wrong values planted in keys")


def pipelines(case: Case, keys: Any) -> Iterator[Any]:
    """The pipeline of each rank."""
    config = parse_distributed_section(keys["distributed"])["pipeline_config"]
    for rank in range(case.schedule.ranks):
        with ranks_of(case.schedule.ranks, rank):
            mesh = dist.device_mesh.init_device_mesh("cpu", (case.schedule.ranks,), mesh_dim_names=("pp",))
            pipeline = AutoPipeline(
                world_mesh=mesh,
                dp_axis_names=(),
                device=torch.device("cpu"),
                pp_schedule=config.pp_schedule,
                pp_schedule_csv=config.pp_schedule_csv,
                pp_microbatch_size=config.pp_microbatch_size,
                pp_batch_size=keys["step_scheduler"]["local_batch_size"],
                module_fqns_per_model_part=config.module_fqns_per_model_part,
            )
            yield pipeline.build(model(), loss_fn=torch.nn.CrossEntropyLoss())


def model() -> torch.nn.Module:
    config = LlamaConfig(
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        num_key_value_heads=2,
        vocab_size=64,
    )
    with torch.device("meta"):
        return LlamaForCausalLM(config)


def test_it_builds_the_order_and_the_stages(tmp_path: Path, ran: Callable[[str], None]):
    for case in CASES:
        keys = document(case, tmp_path)
        parts: dict[int, list[str]] = {}
        for rank, pipeline in enumerate(pipelines(case, keys)):
            assert from_torch(pipeline.info.schedule) == case.schedule
            for stage, part in zip(pipeline.info.stages, pipeline.info.model_parts, strict=True):
                assert case.schedule.placement.rank_of[0][stage.stage_index] == rank
                names = [name.split(".") for name, _ in part.named_parameters()]
                shortened = dict.fromkeys(".".join(name[: 3 if "layers" in name else -1]) for name in names)
                parts[stage.stage_index] = [*shortened]
        planned = [sorted({*part} - {"model.rotary_emb"}) for part in wanted(case, "")["parts"]]
        assert [sorted(parts[stage]) for stage in sorted(parts)] == planned
    ran(f"the order and the stages of {len(CASES)} exports in the pipeline that AutoPipeline builds")


def test_without_layers_it_makes_our_stages(tmp_path: Path):
    for schedule in published(2, 4):
        case = Case(schedule, None)
        for pipeline in pipelines(case, document(case, tmp_path)):
            assert from_torch(pipeline.info.schedule) == schedule


def test_few_microbatches_are_refused_as_its_recipe_does():
    schedule = STRATEGIES["1f1b"](STRATEGIES["1f1b"].shape(4, 3))
    with pytest.raises(Exception, match="3 microbatches are too few"):
        automodel_settings(schedule, Training())
