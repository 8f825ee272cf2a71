"""The web app: ``pipeplan serve``. It needs the extra ``web``; :func:`pipeplan.web.server.serve` starts it.

A request passes :mod:`~pipeplan.web.guard` (host, origin, size), is read by :mod:`~pipeplan.web.requests`, is held
against :mod:`~pipeplan.web.request_size`, and is answered by :mod:`~pipeplan.web.replies` in a process of
:mod:`~pipeplan.web.workers`.
"""
