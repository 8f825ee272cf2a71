"""Keywords of functions, as type checkers see them; made by ``python -m docs.build.options --write``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from pipeplan.extensions.planning.answers.options import ClusterLike, FilePath, ModelLike


class ReviewOptionsKeywords(TypedDict, total=False):
    """Keywords of ReviewOptions."""

    trainer: str
    trainer_version: str | None
    model: ModelLike | None
    cluster: ClusterLike | None
    global_batch: int | None
    sequence: int | None
    trace: FilePath | None
