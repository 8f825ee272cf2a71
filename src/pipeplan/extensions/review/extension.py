"""What the extension registers."""

from pipeplan.foundation.extensions import Extension

EXTENSION = Extension(
    name="review",
    summary="Review of configurations that users already have.",
    needs=("planning",),
)
