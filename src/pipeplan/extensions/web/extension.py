"""What the extension registers."""

from pipeplan.foundation.extensions import Extension

EXTENSION = Extension(
    name="web",
    summary="The web app, the editor of schedules, and the server of an agent's tools.",
    needs=("search", "planning", "review", "training"),
)
