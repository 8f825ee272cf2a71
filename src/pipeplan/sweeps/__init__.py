"""Many tasks on one process, many, or a cluster: results are stored as they come, and a sweep that ends early resumes."""

from pipeplan.sweeps.engine import sweep
from pipeplan.sweeps.task import Failure, Finished, Listener, Progress, Task

__all__ = ["Failure", "Finished", "Listener", "Progress", "Task", "sweep"]
