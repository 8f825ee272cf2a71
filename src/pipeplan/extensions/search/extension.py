"""What the extension registers."""

from pipeplan.foundation.extensions import Extension

EXTENSION = Extension(
    name="search",
    summary="Search for better schedules and layouts, with bounds and proofs.",
    services={
        "reorderer": "pipeplan.extensions.search:Reorderer",
    },
)
