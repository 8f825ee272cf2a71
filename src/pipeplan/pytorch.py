"""The former name of :mod:`pipeplan.runtime`, which users' model files import from."""

raise ImportError("pipeplan.pytorch is now pipeplan.runtime: write 'from pipeplan.runtime import Model'")
