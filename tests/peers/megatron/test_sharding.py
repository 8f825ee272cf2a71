"""Where we place gathers and reductions, and where Megatron-core's schedule functions call their own."""

from dataclasses import replace

from pipeplan.formats import Training
from pipeplan.model import Kind
from pipeplan.passes import add_megatron_collectives
from pipeplan.trainers.megatron import megatron_settings
from tests.peers.megatron.flags import configured
from tests.peers.megatron.recording import one_rank
from tests.peers.megatron.test_order import DEEP, LINES, LOOPS, Ran, accepted, named, slots


def test_collectives_are_where_megatron_calls_them(ran: Ran) -> None:
    different, shapes = [], [shape for shape in (*LINES, *accepted(LOOPS + DEEP)) if shape[0] > 1][::3]
    schedules = {shape: named("interleaved-1f1b" if shape[2] > 1 else "1f1b", shape) for shape in shapes}
    asked = {shape: configured(megatron_settings(each, Training()).text) for shape, each in schedules.items()}
    for ranks in sorted({shape[0] for shape in shapes}):
        for rank in range(ranks):
            with one_rank(rank, ranks) as order_of:
                for shape in (each for each in shapes if each[0] == ranks):
                    # Any function will do: the recording notes the calls in its place.
                    config = replace(asked[shape].config, param_sync_func=print)
                    ours = add_megatron_collectives(schedules[shape])
                    ours = ours.keep(ours.columns.kind != Kind.RESHARD)
                    wanted = slots(ours, rank)
                    if shape[2] == 1:
                        # Without interleaving, hooks of the model gather before its first op; on rank 0 they also reduce.
                        assert wanted.pop(0) == (f"{rank}UNSHARD",)
                        assert wanted[-1] == (f"{rank}REDUCE_GRAD",)
                        wanted = wanted[: -1 if rank == 0 else None]
                    if order_of(replace(asked[shape], config=config)) != wanted:
                        different.append((shape, rank))
    assert different == []
    ran(f"the collectives of {len(shapes)} shapes")
