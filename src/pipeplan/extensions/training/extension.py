"""What the extension registers."""

from pipeplan.foundation.extensions import Extension

EXTENSION = Extension(
    name="training",
    summary="Profiles, runs and traces of training, and one's own training loop; runs need PyTorch.",
    formats=("pipeplan.extensions.training.traces.kineto:FORMATS",),
    services={
        "choose_device": "pipeplan.extensions.training.runtime.group:choose_device",
        "clock_for": "pipeplan.extensions.training.runtime.clocks:clock_for",
        "run_costs": "pipeplan.extensions.training.answers.run_costs:read_run_costs",
        "runs": "pipeplan.extensions.training.traces.run_files",
    },
)
