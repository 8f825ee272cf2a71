"""PyTorch: a schedule in one's own training loop, runs that are measured and verified, costs of real models.

Importing this package without PyTorch raises :class:`~pipeplan.errors.MissingExtraError`.
"""

from pipeplan.runtime.requirements import BACKWARD_VERSIONS, require_torch

require_torch(BACKWARD_VERSIONS, what="pipeplan.runtime")

from pipeplan.runtime.group import choose_device  # noqa: E402
from pipeplan.runtime.model import Model  # noqa: E402
from pipeplan.runtime.models import BUILT_IN, load_model  # noqa: E402
from pipeplan.runtime.pipeline import Evaluation, Pipeline  # noqa: E402
from pipeplan.runtime.profiling import profile, profile_with  # noqa: E402
from pipeplan.runtime.progress import RunProgress  # noqa: E402
from pipeplan.runtime.recording import Recording  # noqa: E402
from pipeplan.runtime.results import Profile, RunResult  # noqa: E402
from pipeplan.runtime.running import run, run_with  # noqa: E402
from pipeplan.runtime.schedule_sources import from_torch, stages_of  # noqa: E402
from pipeplan.runtime.ties import ties_of  # noqa: E402

__all__ = [
    "BUILT_IN",
    "Evaluation",
    "Model",
    "Pipeline",
    "Profile",
    "Recording",
    "RunProgress",
    "RunResult",
    "choose_device",
    "from_torch",
    "load_model",
    "profile",
    "profile_with",
    "require_torch",
    "run",
    "run_with",
    "stages_of",
    "ties_of",
]
