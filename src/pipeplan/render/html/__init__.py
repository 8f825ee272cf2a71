"""Timelines to look into: one page that holds everything and needs no network.

The drawing is TypeScript, in ``web_ui/``; ``assets/`` holds what is built of it.
"""

from pipeplan.render.html.assets import asset
from pipeplan.render.html.data import packed, timeline_data
from pipeplan.render.html.page import html_page, save_html

__all__ = ["asset", "html_page", "packed", "save_html", "timeline_data"]
