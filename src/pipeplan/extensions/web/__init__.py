"""The web app: ``pipeplan serve``. It needs the extra ``web``; :func:`pipeplan.extensions.web.server.serve` starts it.

A request passes ``guard`` (host, origin, size), is parsed by ``requests``, limited in size
by :mod:`~pipeplan.extensions.web.schedules`, and answered by :mod:`~pipeplan.extensions.web.replies` in a process of
:mod:`~pipeplan.extensions.web.workers`.
"""
