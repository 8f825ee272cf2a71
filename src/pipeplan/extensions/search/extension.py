"""Registration of the search: its commands, answers, and what the core asks it for."""

from pipeplan.foundation.extensions import Command, Extension

EXTENSION = Extension(
    name="search",
    summary="Search for better schedules and layouts, with bounds and proofs.",
    services={
        "details": "pipeplan.extensions.search.answers.search_words:search_details",
        "headline": "pipeplan.extensions.search.answers.search_words:headline_of",
        "next_step": "pipeplan.extensions.search.answers.search_words:next_step",
        "reorderer": "pipeplan.extensions.search:Reorderer",
        "table_rows": "pipeplan.extensions.search.answers.search_words:table_rows",
    },
    commands=(
        Command(
            name="search",
            function="pipeplan.extensions.search.commands:search",
            summary="Search for a better schedule under a memory limit.",
            example="-p 4 -m 8 --memory-limit 3act --seconds 10 -o best.csv",
            place=50,
        ),
        Command(
            name="pareto",
            function="pipeplan.extensions.search.commands:pareto",
            summary="Find the Pareto front of time against memory.",
            example="-p 4 -m 8 --points 6 -o front.png",
            place=60,
        ),
    ),
    answers={
        "answer-pareto": "pipeplan.extensions.search.answers.fronts:ParetoFront",
        "pipeplan-result": "pipeplan.extensions.search.answers.search_record:SearchedResult",
    },
    names={
        "answers.fronts": "ParetoFront",
        "answers.replanning": "Replanner",
        "answers.searches": "pareto search",
    },
    spellings={("search", "--pareto"): ("pareto",)},
    other_options={
        ("search", "--full-backward"): ("--leave", "split"),
        ("pareto", "--full-backward"): ("--leave", "split"),
        ("search", "--layout"): ("--layers-per-stage",),
    },
    pages=(
        "explanation/layouts.md",
        "explanation/search.md",
        "how-to/search.md",
        "notebooks/search-under-a-memory-limit.ipynb",
        "tutorials/memory-is-short.md",
    ),
)
