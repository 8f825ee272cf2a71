"""PyTorch: a schedule in one's own training loop, runs that are measured and verified, costs of real models.

Importing this package without PyTorch raises :class:`~pipeplan.foundation.errors.MissingExtraError`.
"""

from pipeplan.extensions.training.runtime.requirements import BACKWARD_VERSIONS, require_torch

require_torch(BACKWARD_VERSIONS, what="pipeplan.runtime")

from pipeplan.extensions.training.runtime.model import Model  # noqa: E402
from pipeplan.extensions.training.runtime.pipeline import Evaluation, Pipeline  # noqa: E402
from pipeplan.extensions.training.runtime.profiling import profile  # noqa: E402
from pipeplan.extensions.training.runtime.recording import Recording  # noqa: E402
from pipeplan.extensions.training.runtime.schedule_sources import stages_of  # noqa: E402
from pipeplan.extensions.training.runtime.ties import ties_of  # noqa: E402

__all__ = ["Evaluation", "Model", "Pipeline", "Recording", "profile", "stages_of", "ties_of"]
