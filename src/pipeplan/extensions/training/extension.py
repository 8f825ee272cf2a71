"""What the extension registers."""

from pipeplan.foundation.extensions import Extension

EXTENSION = Extension(
    name="training",
    summary="Profiles, runs and traces of training, and one's own training loop; runs need PyTorch.",
    services={
        "runs": "pipeplan.formats.run_files",
    },
)
