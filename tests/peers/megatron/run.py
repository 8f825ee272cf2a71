"""In processes of their own, one a rank: Megatron-core's schedule functions on what flags ask for, with gradients."""

import itertools
import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func
from megatron.core.transformer.enums import LayerType
from megatron.core.transformer.transformer_block import get_num_layers_to_build
from megatron.core.transformer.transformer_layer import get_transformer_layer_offset

from tests.peers.megatron.flags import Configured, configured
from tests.peers.megatron.gpt import SMALL, WORDS, gradients, one_step, stages_of, whole_gpt, without_gpu
from tests.peers.megatron.on_cpu import on_cpu
from tests.peers.megatron.stages import Layer, Part, Stage

PROCESSES = 4
TOKENS = 3


@dataclass(frozen=True)
class Case:
    """A text of flags, and what a user gives beside it; layers per stage where the text has no layout.

    ``gpt`` runs Megatron's own model, which notes no ops, in place of one that does.
    """

    name: str
    text: str
    layers_per_stage: int = 1
    users: tuple[tuple[str, Any], ...] = ()
    gpt: bool = False


@dataclass(frozen=True)
class Ran:
    """What one rank ran: its ops in the order of their first work, its layers, and how far its gradients are off.

    ``error`` is the largest difference from a single process's gradient, as a part of the largest value of that.
    """

    rank: int
    ops: tuple[str, ...]
    mingled: tuple[tuple[str, str], ...]
    layers: tuple[tuple[int, ...], ...]
    error: float


@dataclass
class Whole:
    """The whole model, the same in each process."""

    first: Part
    layers: list[Layer]
    further: list[Layer]
    last: Part

    @classmethod
    def of(cls, done: Configured) -> "Whole":
        torch.manual_seed(0)
        width, further = done.config.hidden_size, done.config.mtp_num_layers or 0
        layers = [Layer(width) for _ in range(done.config.num_layers + further)]
        return cls(Part(width), layers[: done.config.num_layers], layers[done.config.num_layers :], Part(width))

    def parameters(self) -> list[torch.nn.Parameter]:
        modules: list[torch.nn.Module] = [self.first, *self.layers, *self.further, self.last]
        return [parameter for module in modules for parameter in module.parameters()]

    def loss(self, batch: torch.Tensor) -> torch.Tensor:
        def unheard(_: str) -> None:
            pass

        x = self.first(batch, unheard)
        for layer in (*self.layers, *self.further):
            x = layer(x, unheard)
        return loss_of(self.last(x, unheard))


def loss_of(output: torch.Tensor) -> torch.Tensor:
    return output.square().sum() / TOKENS


def main(cases: list[Case]) -> list[dict[str, Ran]]:
    """What each of four processes ran of each case, which takes as many ranks as its flags say.

    With more processes than ranks there are replicas of the pipeline, as in Megatron. The processes are forks of this one:
    importing Megatron takes longer than all the cases.
    """
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        return pool.starmap(on_rank, [(rank, cases) for rank in range(PROCESSES)], chunksize=1)


def on_rank(rank: int, cases: list[Case]) -> dict[str, Ran]:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=PROCESSES, timeout=timedelta(minutes=1))
    try:
        with on_cpu():
            return {case.name: ran(case) for case in cases}
    finally:
        dist.destroy_process_group()


def ran(case: Case) -> Ran:
    users = (SMALL if case.gpt else {}) | dict(case.users)
    done = configured(case.text, layers_per_stage=case.layers_per_stage, **users)
    return train_gpt(done) if case.gpt else train(done)


def join(ranks: int, chunks: int | None, experts: int = 1) -> None:
    """Make the groups of pipelines of these ranks, and of as many ranks as share the experts of a layer.

    Megatron is told how many chunks a rank has, None for one. It forgets the groups of the case before, and each would keep
    its threads.
    """
    dist.barrier()
    parallel_state.destroy_model_parallel()
    for group in set(dist.distributed_c10d._world.pg_map) - {dist.group.WORLD}:
        dist.destroy_process_group(group)
    parallel_state.initialize_model_parallel(
        pipeline_model_parallel_size=ranks,
        virtual_pipeline_model_parallel_size=chunks,
        expert_model_parallel_size=experts,
        create_gloo_process_groups=False,
    )


def train(done: Configured) -> Ran:
    """One step on this rank, its gradients averaged over the replicas, against the whole model on the whole batch."""
    config, whole = done.config, Whole.of(done)
    join(config.pipeline_model_parallel_size, config.virtual_pipeline_model_parallel_size)
    replicas = parallel_state.get_data_parallel_world_size()
    shape = (replicas, done.global_batch_size // (done.micro_batch_size * replicas), TOKENS, done.micro_batch_size)
    batches = torch.randn(*shape, config.hidden_size, dtype=torch.float64)
    for batch in batches.flatten(0, 1):
        (whole.loss(batch) / (shape[0] * shape[1])).backward()
    wanted = {each: each.grad.clone() for each in whole.parameters()}
    for each in whole.parameters():
        each.grad = None

    rank = parallel_state.get_pipeline_model_parallel_rank()
    own = batches[parallel_state.get_data_parallel_rank()]
    stages, layers = built(done, whole, rank)
    heard: list[str] = []

    def step(data: Iterator[tuple[int, torch.Tensor]], model: Stage, return_schedule_plan: bool = False) -> Any:
        microbatch, batch = next(data)
        number = (model.vp_stage or 0) * config.pipeline_model_parallel_size + rank
        note = partial(noted, heard, number, microbatch, config.delay_wgrad_compute)
        make = model.build_schedule_plan if return_schedule_plan else model
        return make(batch, note), lambda output: (loss_of(output), {})

    get_forward_backward_func()(
        forward_step_func=step,
        data_iterator=[enumerate(own) for _ in stages],
        model=stages,
        num_microbatches=shape[1],
        seq_length=TOKENS,
        micro_batch_size=done.micro_batch_size,
    )
    return Ran(rank, *order_of(heard), layers, worst(stages, wanted))


def train_gpt(done: Configured) -> Ran:
    """One step of Megatron's own model on this rank, against the model on one rank on the same replica's batch.

    Ranks that share experts work on batches of their own, in the pipeline and without it.
    """
    config, processes = done.config, dist.get_world_size()
    replicas = processes // config.pipeline_model_parallel_size
    torch.manual_seed(1)
    batches = torch.randint(0, WORDS, (done.global_batch_size // done.micro_batch_size, done.micro_batch_size, 6))
    own = batches.chunk(replicas)[dist.get_rank() % replicas]
    with without_gpu():
        join(1, None, config.expert_model_parallel_size)
        whole = whole_gpt(done)
        one_step([whole], own, done.micro_batch_size)
        join(
            config.pipeline_model_parallel_size,
            config.virtual_pipeline_model_parallel_size,
            config.expert_model_parallel_size,
        )
        assert parallel_state.get_data_parallel_rank() == dist.get_rank() % replicas
        stages = stages_of(done, whole)
        one_step([stage for stage, _ in stages], own, done.micro_batch_size)
    wanted = {name: each.grad for name, each in whole.named_parameters()}
    found = gradients(stages)
    assert found.keys() == wanted.keys(), "stages hold other parameters than the whole model"
    # An expert to which no token goes has a gradient of zeros.
    errors = [float((found[name] - want).abs().max() / (want.abs().max() or 1)) for name, want in wanted.items()]
    layers = tuple(tuple(layer.layer_number - 1 for layer in stage.decoder.layers) for stage, _ in stages)
    return Ran(parallel_state.get_pipeline_model_parallel_rank(), (), (), layers, max(errors))


def noted(heard: list[str], stage: int, microbatch: int, delayed: bool, kind: str) -> None:
    """Hear of an op; where weight gradients are delayed, the backward of embedding and head is a part of the inputs'."""
    heard.append(f"{stage}{'I' if delayed and kind == 'B' else kind}{microbatch}")


def built(done: Configured, whole: Whole, rank: int) -> tuple[list[Stage], tuple[tuple[int, ...], ...]]:
    """This rank's stages of what Megatron's own functions say that it holds, and which layers that is."""
    config, stages, held = done.config, [], []
    chunks = config.virtual_pipeline_model_parallel_size or 1
    for chunk in range(chunks):
        vp_stage = chunk if chunks > 1 else None
        start = get_transformer_layer_offset(config, vp_stage, rank)
        layers = tuple(range(start, start + get_num_layers_to_build(config, vp_stage, rank)))
        first = parallel_state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=vp_stage)
        last = parallel_state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=vp_stage)
        further = further_here(done, rank, chunk, last)
        stages.append(
            Stage(
                config,
                [*(whole.layers[layer] for layer in layers), *whole.further[:further]],
                whole.first if first else None,
                whole.last if last else None,
                vp_stage,
            )
        )
        held.append(layers)
    return stages, tuple(held)


def further_here(done: Configured, rank: int, chunk: int, last: bool) -> int:
    """How many layers that predict further tokens are on this stage: as the layout says, without one on the last."""
    layout = done.config.pipeline_model_parallel_layout
    if layout is None:
        return (done.config.mtp_num_layers or 0) if last else 0
    return int(layout.get_num_layers_to_build(LayerType.mtp, chunk, rank))


def order_of(heard: list[str]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The ops in the order of their first work, and those pairs of which one began before the other had ended."""
    begin = {op: at for at, op in reversed(list(enumerate(heard)))}
    end = {op: at for at, op in enumerate(heard)}
    ops = sorted(begin, key=begin.__getitem__)
    mingled = [pair for pair in itertools.pairwise(ops) if begin[pair[1]] < end[pair[0]]]
    return tuple(ops), tuple(mingled)


def worst(stages: list[Stage], wanted: dict[torch.nn.Parameter, torch.Tensor]) -> float:
    """How far this rank's gradients are off, averaged over the replicas."""
    errors = [0.0]
    for parameter in (each for stage in stages for each in stage.parameters()):
        grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        dist.all_reduce(grad, group=parallel_state.get_data_parallel_group())
        mean, want = grad / parallel_state.get_data_parallel_world_size(), wanted[parameter]
        errors.append(float((mean - want).abs().max() / want.abs().max()))
    return max(errors)
