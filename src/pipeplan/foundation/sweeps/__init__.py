"""Many independent tasks on one process or many, with a store from which an interrupted sweep resumes."""

from pipeplan.foundation.sweeps.engine import sweep
from pipeplan.foundation.sweeps.tasks import Failure, Finished, ProgressListener, SweepProgress, SweepTask

__all__ = ["Failure", "Finished", "ProgressListener", "SweepProgress", "SweepTask", "sweep"]
