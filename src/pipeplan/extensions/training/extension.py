"""Registration of training: its commands, answers, formats, and what other parts ask it for."""

from pipeplan.foundation.extensions import Command, Extension

EXTENSION = Extension(
    name="training",
    summary="Profiles, runs and traces of training, and one's own training loop; runs need PyTorch.",
    formats=("pipeplan.extensions.training.traces.kineto:FORMATS",),
    services={
        "choose_device": "pipeplan.extensions.training.runtime.group:choose_device",
        "clock_for": "pipeplan.extensions.training.runtime.clocks:clock_for",
        "run_costs": "pipeplan.extensions.training.answers.run_costs:read_run_costs",
        "settings_of_timeline": "pipeplan.extensions.training.answers.run_costs:settings_of_timeline",
        "runs": "pipeplan.extensions.training.traces.run_files",
    },
    commands=(
        Command(
            name="profile",
            function="pipeplan.extensions.training.commands:profile",
            summary="Measure the costs of a model's stages, as a config file.",
            example="1f1b -p 4 --model gpt-small -o costs.yaml",
            place=120,
        ),
        Command(
            name="run",
            function="pipeplan.extensions.training.commands:run",
            summary="Train a model with a schedule, and compare the measured step with the prediction.",
            example="zb-h1 -p 2 -m 4 --verify",
            place=140,
        ),
        Command(
            name="diff",
            function="pipeplan.extensions.training.commands:diff",
            summary="Compare a planned with a measured timeline, op by op.",
            example="1f1b run.json -c costs.yaml",
            place=150,
        ),
    ),
    answers={
        "answer-diff": "pipeplan.extensions.training.diff.difference:Diff",
        "answer-profile": "pipeplan.extensions.training.answers.cost_profiles:CostProfile",
        "answer-run": "pipeplan.extensions.training.answers.training_runs:TrainingRun",
    },
    names={
        "answers.cost_profiles": "CostProfile profile",
        "answers.training_runs": "TrainingRun run",
        "diff.diff": "diff",
        "diff.difference": "Diff",
    },
    pages=(
        "how-to/traces.md",
        "how-to/training.md",
        "tutorials/read-a-trace.md",
        "tutorials/train-and-compare.md",
    ),
)
