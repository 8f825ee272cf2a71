"""The options of a review."""

from __future__ import annotations

from dataclasses import dataclass

from pipeplan.api.planning.options import ClusterLike, FilePath, ModelLike
from pipeplan.costs import COUNT, Options, option
from pipeplan.reviewing import TRAINER_KINDS

AUTO = "auto"
"""Choice of the trainer that the file shows."""


@dataclass(frozen=True, kw_only=True)
class ReviewOptions(Options):
    """Options of a review."""

    trainer: str = option(
        AUTO, kind="choice", title="Trainer", group="trainer", choices=(AUTO, *(kind.name for kind in TRAINER_KINDS)),
        flags=("--for",), help="Trainer of the configuration; auto: as the file shows.",
    )  # fmt: skip
    trainer_version: str | None = option(
        kind="text", title="Release", group="trainer",
        help="Release of the trainer, such as 0.16 for megatron-lm: only its rules apply.", default="the newest",
    )  # fmt: skip
    model: ModelLike | None = option(
        kind="object", title="Model", group="training", longest=4096,
        help="Model, where the file does not name it: a preset or a config.json.",
    )  # fmt: skip
    cluster: ClusterLike | None = option(
        kind="object", title="Cluster", group="training", longest=4096,
        help="Cluster, where the file does not name it: GPU:PER_NODExNODES, such as h100-sxm:8x16, or a file.",
    )  # fmt: skip
    global_batch: int | None = option(
        kind="count", title="Global batch", group="training", unit="sequences", range=COUNT,
        help="Sequences per step, where the file does not say.",
    )  # fmt: skip
    sequence: int | None = option(
        kind="count", title="Sequence", group="training", unit="tokens", range=COUNT,
        help="Sequence length in tokens, where the file does not say.",
    )  # fmt: skip
    trace: FilePath | None = option(
        kind="file", title="Traces", group="training",
        help="Folder with the traces of a run of this configuration, which is reviewed, too.",
    )  # fmt: skip
