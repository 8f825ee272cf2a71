"""Interactive timelines: one page that holds everything and needs no network.

The drawing is TypeScript, in ``web_ui/``; ``assets/`` holds what is built from it.
"""

from pipeplan.drawing.html.archive import archived
from pipeplan.drawing.html.assets import asset
from pipeplan.drawing.html.data import packed, themes_for, timeline_data
from pipeplan.drawing.html.page import html_page, save_html
from pipeplan.drawing.html.report import Report, report_data, report_page

__all__ = [
    "Report",
    "archived",
    "asset",
    "html_page",
    "packed",
    "report_data",
    "report_page",
    "save_html",
    "themes_for",
    "timeline_data",
]
