"""Registration of the web app and of an agent's tools: their commands."""

from pipeplan.foundation.extensions import Command, Extension

EXTENSION = Extension(
    name="web",
    summary="The web app, the editor of schedules, and the server of an agent's tools.",
    commands=(
        Command(
            name="serve",
            function="pipeplan.extensions.web.commands:serve",
            summary="Serve the web app: forms, comparisons and timelines in a browser.",
            example="--open",
            place=160,
        ),
        Command(
            name="mcp",
            function="pipeplan.extensions.web.commands:mcp",
            summary="Serve tools of an agent, over the Model Context Protocol.",
            example="--seconds 300",
            place=170,
        ),
    ),
    pages=("how-to/agents.md", "how-to/serve.md"),
)
