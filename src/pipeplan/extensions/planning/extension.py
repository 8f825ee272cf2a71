"""Registration of planning: its commands, answers, registries, and what the core asks it for."""

from pipeplan.foundation.extensions import Command, Extension

EXTENSION = Extension(
    name="planning",
    summary="Choice and estimate of configurations: models, GPUs, memory, trainers' flags.",
    needs=("search",),
    services={
        "attention_share": "pipeplan.extensions.planning.workload.parameters:attention_share_of",
        "bundled_configurations": "pipeplan.extensions.planning.answers.bundled_configurations",
        "calibrate_on_run": "pipeplan.extensions.planning.answers.calibrations:calibrate_on_run",
        "calibrated": "pipeplan.extensions.planning.answers.calibrations:calibrated",
        "costs_of_configuration": "pipeplan.extensions.planning.answers.one_configuration:costs_in",
        "require_calibration_file": "pipeplan.extensions.planning:require_calibration_file",
    },
    commands=(
        Command(
            name="plan",
            function="pipeplan.extensions.planning.commands:plan",
            summary="Choose the configuration to train with, for a model, a cluster and a batch.",
            example="--model llama3-70b --cluster h100-sxm:8x8 --global-batch 128 --sequence 8192",
            place=70,
        ),
        Command(
            name="estimate",
            function="pipeplan.extensions.planning.commands:estimate",
            summary="Estimate step time and memory of given configurations.",
            example="best.yaml",
            place=80,
        ),
        Command(
            name="calibrate",
            function="pipeplan.extensions.planning.commands:calibrate",
            summary="Calibrate the planner to a GPU, or to runs.",
            example="llama3-8b --gpu h100-sxm -o calibration.yaml",
            place=130,
        ),
    ),
    answers={
        "answer-estimate": "pipeplan.extensions.planning.answers.estimates:Estimates",
        "answer-gpus": "pipeplan.extensions.planning.answers.presets:Gpus",
        "answer-models": "pipeplan.extensions.planning.answers.presets:Models",
        "answer-plan": "pipeplan.extensions.planning.answers.plans:Plan",
        "calibration": "pipeplan.extensions.planning.answers.calibrations:CalibrationProfile",
    },
    registries=("pipeplan.extensions.planning.workload:MODELS", "pipeplan.extensions.planning.hardware:PRESETS"),
    names={
        "answers.estimates": "Estimates",
        "answers.estimation": "estimate",
        "answers.planned": "plan",
        "answers.plans": "Plan",
        "answers.presets": "gpus models",
    },
    lists={
        "models": "pipeplan.extensions.planning.answers.presets:models",
        "gpus": "pipeplan.extensions.planning.answers.presets:gpus",
    },
    spellings={
        ("plan", "--models"): ("list", "models"),
        ("plan", "--gpus"): ("list", "gpus"),
        ("plan", "--clusters"): ("list", "gpus"),
        ("profile", "--calibrate"): ("calibrate",),
    },
    pages=(
        "explanation/accuracy.md",
        "explanation/memory.md",
        "how-to/layouts.md",
        "how-to/measured-runs.md",
        "how-to/planning.md",
        "notebooks/from-config-to-configuration.ipynb",
        "reference/hardware.md",
        "reference/models.md",
        "tutorials/from-config-to-flags.md",
    ),
)
