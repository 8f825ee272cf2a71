"""A configuration for torchtitan's ConfigManager with the sections that an export's or a plan's flags set.

``--module tests.peers.torchtitan.planned --config planned``. The types are those of ``Trainer.Config``, the whole of which
imports the packages that load data and log.
"""

from dataclasses import dataclass, field

from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig
from torchtitan.distributed.activation_checkpoint import ActivationCheckpointingConfig, SelectiveAC


@dataclass
class Config:
    """What the flags set."""

    hf_assets_path: str = "."
    dump_folder: str = "."
    training: TrainingConfig = field(default_factory=TrainingConfig)
    parallelism: ParallelismConfig = field(default_factory=ParallelismConfig)
    activation_checkpoint: ActivationCheckpointingConfig = field(default_factory=SelectiveAC.Config)
    compile: CompileConfig = field(default_factory=CompileConfig)


def planned() -> Config:
    return Config()
