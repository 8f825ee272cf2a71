"""Names of pipeplan.extensions.training.traces, made by ``python -m docs.build.stubs --write``."""

from pipeplan.extensions.training.traces.kineto import parse_kineto as parse_kineto
from pipeplan.extensions.training.traces.run_files import holds_run as holds_run
from pipeplan.extensions.training.traces.run_files import read_run as read_run
from pipeplan.extensions.training.traces.traced_run import MeasuredRun as MeasuredRun
from pipeplan.extensions.training.traces.traced_run import median_step as median_step
