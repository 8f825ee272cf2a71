"""What the extension registers."""

from pipeplan.foundation.extensions import Extension

EXTENSION = Extension(
    name="planning",
    summary="Choice and estimate of configurations: models, GPUs, memory, trainers' flags.",
    needs=("search",),
    services={
        "attention_share": "pipeplan.extensions.planning.workload.attention_share:attention_share_of",
        "bundled_configurations": "pipeplan.extensions.planning.answers.bundled_configurations",
        "calibrate_on_run": "pipeplan.extensions.planning.answers.calibrations:calibrate_on_run",
        "calibrated": "pipeplan.extensions.planning.answers.calibrations:calibrated",
        "costs_of_configuration": "pipeplan.extensions.planning.answers.bundled:costs_in",
        "require_calibration_file": "pipeplan.extensions.planning:require_calibration_file",
    },
)
