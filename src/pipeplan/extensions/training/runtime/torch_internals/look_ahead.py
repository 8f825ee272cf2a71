"""Stage whose look-ahead fails on all ranks together.

Before its first pass, PyTorch runs one microbatch forward, and backward, to learn what the stages send. Each stage waits for
its neighbour's metadata, so an exception of one module would leave the others waiting. Here, a stage that fails sends a
failure in place of its metadata, at which the next one fails as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch.distributed.pipelining import PipelineStage


class NeighbourFailed(Exception):
    """The look-ahead of another stage failed."""


@dataclass(frozen=True, slots=True)
class _NoMetadata:
    """Message that a stage that failed sends in place of its metadata."""


class LookAheadStage(PipelineStage):
    """Stage that keeps the error of its look-ahead in ``failure``, and passes it on."""

    failure: Exception | None = None
    _sent = False

    def _prepare_forward_infra(self, num_microbatches: int, args: Any, *rest: Any, **keywords: Any) -> Any:
        self.failure = None
        compute = super()._prepare_forward_infra

        def prepare() -> Any:
            if self._beside(self.stage_index - 1):
                _metadata(args)
            return compute(num_microbatches, args, *rest, **keywords)

        return self._tried(prepare, self.stage_index + 1)

    def _prepare_backward_infra(self, num_microbatches: int, *rest: Any, **keywords: Any) -> Any:
        compute = super()._prepare_backward_infra
        after = self.stage_index + 1

        def prepare() -> Any:
            if self._beside(after):
                _metadata(keywords.get("received_grad_meta"))
            if self.failure is None:
                return compute(num_microbatches, *rest, **keywords)
            if self._elsewhere(after):
                self._recv_meta(after)
            raise self.failure

        return self._tried(prepare, self.stage_index - 1)

    def _tried(self, prepare: Callable[[], Any], neighbour: int) -> Any:
        """Prepare for a pass. If that fails, keep the error, and let the neighbour fail."""
        self._sent = False
        try:
            return prepare()
        except Exception as error:
            self.failure = self.failure or error
        if not self._sent and self._elsewhere(neighbour):
            self._send_meta(_NoMetadata(), neighbour)
        return _NoMetadata()

    def _beside(self, neighbour: int) -> bool:
        """Return whether there is such a stage, on this rank: then PyTorch passes its metadata as an argument."""
        return 0 <= neighbour < self.num_stages and self._is_same_rank(neighbour)

    def _elsewhere(self, neighbour: int) -> bool:
        """Return whether there is such a stage, on another rank."""
        return 0 <= neighbour < self.num_stages and not self._is_same_rank(neighbour)

    def _recv_meta(self, src_stage: int) -> Any:
        return _metadata(super()._recv_meta(src_stage))

    def _send_meta(self, meta: Any, dst_stage: int) -> None:
        self._sent = True
        super()._send_meta(meta, dst_stage)


def _metadata(received: Any) -> Any:
    """Return what a neighbour sent, unless it failed."""
    if isinstance(received, _NoMetadata):
        raise NeighbourFailed("the look-ahead of another stage failed")
    return received
