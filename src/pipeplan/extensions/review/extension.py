"""Registration of reviews: their command, answers, and what other parts ask them for."""

from pipeplan.foundation.extensions import Command, Extension

EXTENSION = Extension(
    name="review",
    summary="Review of configurations that users already have.",
    needs=("search", "planning"),
    services={
        "configuration_rows": "pipeplan.extensions.review.answers.configuration_rows:configuration_rows",
    },
    commands=(
        Command(
            name="review",
            function="pipeplan.extensions.review.commands:review",
            summary="Review a configuration that you already have, and repair it.",
            example="train.sh",
            place=90,
        ),
    ),
    answers={
        "answer-review": "pipeplan.extensions.review.answers.result:Review",
        "answer-review-rules": "pipeplan.extensions.review.answers.rules_table:ReviewRules",
    },
    names={
        "answers.result": "Review",
        "answers.review": "review",
        "answers.rules_table": "review_rules",
    },
    lists={"rules": "pipeplan.extensions.review.answers.rules_table:review_rules"},
    spellings={("review", "--rules"): ("list", "rules")},
    pages=("how-to/review.md",),
)
