"""Interactive timelines: one page that holds everything and needs no network.

The drawing is TypeScript, in ``web_ui/``; ``assets/`` holds what is built from it.
"""

from pipeplan.drawing.html.assets import asset
from pipeplan.drawing.html.data import packed, timeline_data
from pipeplan.drawing.html.page import html_page, save_html

__all__ = ["asset", "html_page", "packed", "save_html", "timeline_data"]
