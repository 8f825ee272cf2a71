"""What the extension registers."""

from pipeplan.foundation.extensions import Extension

EXTENSION = Extension(
    name="training",
    summary="Profiles, runs and traces of training, and one's own training loop; runs need PyTorch.",
    formats=("pipeplan.traces.kineto:FORMATS",),
    services={
        "choose_device": "pipeplan.runtime.group:choose_device",
        "clock_for": "pipeplan.runtime.clocks:clock_for",
        "run_costs": "pipeplan.api.training.run_costs:read_run_costs",
        "runs": "pipeplan.traces.run_files",
    },
)
