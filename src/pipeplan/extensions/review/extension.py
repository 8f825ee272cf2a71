"""What the extension registers."""

from pipeplan.foundation.extensions import Extension

EXTENSION = Extension(
    name="review",
    summary="Review of configurations that users already have.",
    needs=("search", "planning"),
    services={
        "configuration_rows": "pipeplan.extensions.review.answers.configuration_rows:configuration_rows",
    },
)
