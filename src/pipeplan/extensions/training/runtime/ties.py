"""Tied parameters: parameters of several stages that train as one, such as the weight of an embedding and its head.

Every rank trains its own copy. Before a step, the gradient of a tie is kept in its first parameter alone; after the step,
each of its parameters gets the sum of the gradients of all::

                     0.emb.weight (rank 0)    3.head.weight (rank 3)
    step before      total                    total
    drop_copies      total                    none
    step             total + its gradients    its gradients
    reduce           sum of both              sum of both
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from pipeplan.extensions.training.runtime.agreement import on_all_ranks
from pipeplan.extensions.training.runtime.stage_modules import unwrapped
from pipeplan.foundation.errors import InputError, UnknownNameError

Tied = Iterable[Sequence[str]]
"""Groups of names of parameters that train as one: ``[("0.emb.weight", "3.head.weight")]``, as STAGE.PARAMETER."""


def ties_of(stages: Mapping[int, nn.Module] | Sequence[nn.Module]) -> list[tuple[str, ...]]:
    """Return the parameters that several stages of a whole model share, as ``Pipeline(..., tied=...)`` takes them.

    Parameters
    ----------
    stages
        Modules of all stages, in their order or by their numbers, that one process has built together. Their parameters
        may be on the device ``meta``, which takes no memory.
    """
    numbered = stages if isinstance(stages, Mapping) else dict(enumerate(stages))
    names: dict[nn.Parameter, list[str]] = {}
    for stage in sorted(numbered):
        for path, parameter in unwrapped(numbered[stage]).named_parameters():
            names.setdefault(parameter, []).append(f"{stage}.{path}")
    return [tuple(group) for group in names.values() if len(group) > 1]


@dataclass(frozen=True, slots=True)
class _Tie:
    """A tie of which this rank holds a part.

    Attributes
    ----------
    ranks
        Ranks that hold its parameters, in the order of their names.
    places
        Module and path of this rank's parameters.
    """

    ranks: tuple[int, ...]
    places: tuple[tuple[nn.Module, str], ...]

    def parameters(self) -> list[nn.Parameter]:
        """Return this rank's parameters, each once."""
        # Looked up again in every step, because a module may replace its parameters.
        return list(dict.fromkeys(module.get_parameter(path) for module, path in self.places))


class Ties:
    """Ties of a pipeline, as one rank sees them. All ranks create them together.

    Parameters
    ----------
    tied
        The groups of names.
    rank_of
        Rank of every stage.
    stages
        Modules of this rank's stages.
    group
        Process group of the pipeline.

    Raises
    ------
    InputError
        If the ranks have different ties, a name has no stage or is in two ties, or the parameters of a tie differ in shape,
        type, sharding, or in being trained.
    UnknownNameError
        If a stage has no parameter of a name.
    """

    def __init__(self, tied: Tied, rank_of: Sequence[int], stages: Mapping[int, nn.Module], group: Any) -> None:
        self._rank, self._group = dist.get_rank(group), group

        def find_own() -> tuple[list[tuple[str, ...]], tuple[list[tuple[str, ...]], dict[str, _Facts]]]:
            names = _checked(tied, len(rank_of))
            return names, (names, _facts(names, stages))

        names, by_rank = on_all_ranks(find_own, group)
        if any(other != names for other, _ in by_rank):
            raise InputError("the ranks have different ties: pass the same on all of them", field="tied")
        facts = {name: fact for _, mine in by_rank for name, fact in mine.items()}
        for tie in names:
            _require_alike(tie, facts)
        held = [(tie, [_place(name, stages) for name in tie if _stage(name) in stages]) for tie in names]
        self._ties = [
            _Tie(tuple(dict.fromkeys(rank_of[_stage(name)] for name in tie)), tuple(places))
            for tie, places in held
            if places
        ]
        self._any = bool(names)
        self.share_values()

    def __bool__(self) -> bool:
        """Return whether the pipeline has ties, on any rank."""
        return self._any

    def share_values(self) -> None:
        """Give all parameters of a tie the value of its first one. All ranks must call this."""
        with torch.no_grad():
            for tie in self._ties:
                first, *others = tie.parameters()
                value = _local(first)
                self._send_first(tie, value)
                for parameter in others:
                    _local(parameter).copy_(value)

    def _send_first(self, tie: _Tie, value: Tensor) -> None:
        first, *others = tie.ranks
        if self._rank == first:
            self._exchange(
                [dist.P2POp(dist.isend, value.contiguous(), group=self._group, group_peer=r) for r in others]
            )
        elif value.numel():
            received = torch.empty_like(value, memory_format=torch.contiguous_format)
            self._exchange([dist.P2POp(dist.irecv, received, group=self._group, group_peer=first)])
            value.copy_(received)

    def copies(self) -> set[nn.Parameter]:
        """Return this rank's parameters whose gradient another parameter has, too: a norm counts them once."""
        return {parameter for tie in self._ties for parameter in self._copies(tie)}

    def _copies(self, tie: _Tie) -> list[nn.Parameter]:
        parameters = tie.parameters()
        return parameters[1:] if self._rank == tie.ranks[0] else parameters

    def drop_copies(self) -> None:
        """Keep the gradient of earlier steps in the first parameter of a tie alone, so that the sum has it once."""
        for parameter in self.copies():
            parameter.grad = None

    def reduce(self) -> None:
        """Give all parameters of a tie the sum of their gradients. All ranks must call this."""
        with torch.no_grad():
            for tie in self._ties:
                parameters = [parameter for parameter in tie.parameters() if parameter.requires_grad]
                if parameters:
                    self._reduce(tie, parameters)

    def _reduce(self, tie: _Tie, parameters: Sequence[nn.Parameter]) -> None:
        for parameter in parameters:
            parameter.grad = _gradient(parameter)
        first, *others = (_local(parameter.grad) for parameter in parameters)
        for gradient in others:
            first += gradient
        self._sum(tie, first)
        for gradient in others:
            gradient.copy_(first)

    def _sum(self, tie: _Tie, mine: Tensor) -> None:
        """Sum the gradients of the ranks in place. All of them add in one order, and so get the same bits."""
        others = [rank for rank in tie.ranks if rank != self._rank]
        if not others or not mine.numel():
            return
        sent = mine.contiguous()
        parts = {rank: torch.empty_like(sent) for rank in others}
        sends = [dist.P2POp(dist.isend, sent, group=self._group, group_peer=rank) for rank in others]
        receives = [dist.P2POp(dist.irecv, parts[rank], group=self._group, group_peer=rank) for rank in others]
        self._exchange([*sends, *receives])
        parts[self._rank] = mine
        total, *rest = (parts[rank] for rank in tie.ranks)
        for part in rest:
            total += part
        if total is not mine:
            mine.copy_(total)

    def _exchange(self, messages: list[dist.P2POp]) -> None:
        if messages and messages[0].tensor.numel():
            for work in dist.batch_isend_irecv(messages):
                work.wait()


def _gradient(parameter: nn.Parameter) -> Tensor:
    """Return the gradient of a parameter, zeros without one, as a tensor that messages and sums can take."""
    if parameter.grad is None:
        return torch.zeros_like(parameter)
    return parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad


def _local(tensor: Any) -> Tensor:
    """Return this rank's part of a tensor that FSDP2 or tensor parallelism shards."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


_Facts = tuple[tuple[int, ...], str, tuple[int, ...], bool]
"""Shape of a parameter, its type, the shape of the rank's part, and whether it is trained."""


def _checked(tied: Any, stages: int) -> list[tuple[str, ...]]:
    """Return the ties, whose names have known stages."""
    groups = list(tied) if isinstance(tied, Iterable) else [tied]
    for group in groups:
        if isinstance(group, str) or not isinstance(group, Sequence) or len(group) < 2:
            raise InputError(
                f'invalid tie {group!r}: expected two names or more, such as tied=[("0.emb.weight", "3.head.weight")]',
                field="tied",
            )
        for name in group:
            if not isinstance(name, str) or not name.partition(".")[0].isdecimal():
                raise InputError(
                    f"invalid name {name!r} in a tie: expected STAGE.PARAMETER, such as '0.emb.weight'", field="tied"
                )
            if _stage(name) >= stages:
                raise InputError(
                    f"unknown stage {_stage(name)} in the tied name '{name}': the schedule has the stages 0 to {stages - 1}",
                    field="tied",
                )
    names = [name for group in groups for name in group]
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise InputError(f"'{twice}' is in the ties twice: put all names of one parameter into one tie", field="tied")
    return [tuple(group) for group in groups]


def _facts(names: Sequence[tuple[str, ...]], stages: Mapping[int, nn.Module]) -> dict[str, _Facts]:
    """Return the facts of this rank's tied parameters by name. Each of them is in one tie."""
    facts: dict[str, _Facts] = {}
    tie_of: dict[nn.Parameter, tuple[int, str]] = {}
    for number, tie in enumerate(names):
        for name in (name for name in tie if _stage(name) in stages):
            module, path = _place(name, stages)
            try:
                parameter = module.get_parameter(path)
            except AttributeError:
                own = [f"{_stage(name)}.{other}" for other, _ in module.named_parameters(remove_duplicate=False)]
                raise UnknownNameError("parameter", name, own, field="tied") from None
            other_number, other = tie_of.setdefault(parameter, (number, name))
            if other_number != number:
                raise InputError(
                    f"'{other}' and '{name}' are one parameter, but in two ties: put all of its names into one tie",
                    field="tied",
                )
            part = _local(parameter)
            facts[name] = (tuple(parameter.shape), str(parameter.dtype), tuple(part.shape), parameter.requires_grad)
    return facts


def _require_alike(tie: tuple[str, ...], facts: Mapping[str, _Facts]) -> None:
    shape, kind, part, trained = facts[tie[0]]
    for name in tie[1:]:
        other_shape, other_kind, other_part, other_trained = facts[name]
        if other_shape != shape:
            reason = f"have different shapes, {shape} and {other_shape}"
        elif other_kind != kind:
            reason = f"have different types, {kind.removeprefix('torch.')} and {other_kind.removeprefix('torch.')}"
        elif other_part != part:
            reason = "are sharded differently: shard both in the same way"
        elif other_trained != trained:
            reason = "are not both trained: set requires_grad of both, or of neither"
        else:
            continue
        raise InputError(f"the tied parameters '{tie[0]}' and '{name}' {reason}", field="tied")


def _stage(name: str) -> int:
    return int(name.partition(".")[0])


def _place(name: str, stages: Mapping[int, nn.Module]) -> tuple[nn.Module, str]:
    return unwrapped(stages[_stage(name)]), name.partition(".")[2]
