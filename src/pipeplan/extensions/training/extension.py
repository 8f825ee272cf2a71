"""What the extension registers."""

from pipeplan.foundation.extensions import Extension

EXTENSION = Extension(
    name="training",
    summary="Profiles, runs and traces of training, and one's own training loop; runs need PyTorch.",
    formats=("pipeplan.traces.kineto:FORMATS",),
    services={
        "runs": "pipeplan.traces.run_files",
    },
)
