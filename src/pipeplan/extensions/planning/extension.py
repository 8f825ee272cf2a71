"""What the extension registers."""

from pipeplan.foundation.extensions import Extension

EXTENSION = Extension(
    name="planning",
    summary="Choice and estimate of configurations: models, GPUs, memory, trainers' flags.",
    needs=("search",),
    services={
        "attention_share": "pipeplan.workload.attention_share:attention_share_of",
        "bundled_configurations": "pipeplan.api.planning.bundled_configurations",
        "calibrate_on_run": "pipeplan.api.planning.calibrations:calibrate_on_run",
        "calibrated": "pipeplan.api.planning.calibrations:calibrated",
        "costs_of_configuration": "pipeplan.api.planning.bundled:costs_in",
        "require_calibration_file": "pipeplan.planner:require_calibration_file",
    },
)
