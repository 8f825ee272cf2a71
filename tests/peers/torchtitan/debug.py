"""A configuration for torchtitan's ConfigManager: ``--module tests.peers.torchtitan.debug --config debug``.

It has the two sections that an export sets. The whole ``Trainer.Config`` imports the packages that load data and log.
"""

from dataclasses import dataclass, field

from torchtitan.config import ParallelismConfig, TrainingConfig


@dataclass
class Config:
    """What an export sets."""

    hf_assets_path: str = "."
    training: TrainingConfig = field(default_factory=TrainingConfig)
    parallelism: ParallelismConfig = field(default_factory=ParallelismConfig)


def debug() -> Config:
    return Config()
