"""What hardware makes of work: how long a product, a memory pass, a collective takes. It knows nothing of models."""

from pipeplan.hardware.gpu import Cluster, Gpu, Link

__all__ = ["Cluster", "Gpu", "Link"]
