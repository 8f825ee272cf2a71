"""The web app: ``pipeplan serve``. It needs the extra ``web``; :func:`pipeplan.web.server.serve` starts it.

A request passes :mod:`~pipeplan.web.guard` (host, origin, size), is parsed by :mod:`~pipeplan.web.requests`, limited in size
by :mod:`~pipeplan.web.schedules`, and answered by :mod:`~pipeplan.web.replies` in a process of
:mod:`~pipeplan.web.workers`.
"""
