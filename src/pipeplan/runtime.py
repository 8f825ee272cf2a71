"""PyTorch: a schedule in one's own training loop, runs that are measured and verified, costs of real models.

Importing this module without PyTorch raises :class:`~pipeplan.foundation.errors.MissingExtraError`.
"""

from pipeplan.extensions.training.runtime import *  # noqa: F403
from pipeplan.extensions.training.runtime import __all__ as __all__
