"""Models, clusters and configurations that tests of the planner share."""

from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.hardware import Cluster, cluster
from pipeplan.extensions.planning.workload import ModelShape, model

H100: Cluster = cluster("h100-sxm:8x8")
LLAMA: ModelShape = model("llama3-70b")
DEEPSEEK: ModelShape = model("deepseek-v3")


def configuration(**changes: object) -> Configuration:
    """Llama-3 70B on 64 H100 as Megatron Bridge's recipe has it, but for what is changed."""
    settings: dict[str, object] = {
        "sequence": 8192,
        "global_batch": 128,
        "tensor": 4,
        "pipeline": 4,
        "context": 2,
        "data": 2,
        "chunks": 5,
        "schedule": "interleaved-1f1b",
        "sequence_parallel": True,
    }
    return Configuration(**(settings | changes))  # type: ignore[arg-type]
