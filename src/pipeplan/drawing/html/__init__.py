"""Interactive timelines: one page that holds everything and needs no network.

The drawing is TypeScript, in ``web_ui/``; ``assets/`` holds what is built from it.
"""

from pipeplan.drawing.html.assets import asset
from pipeplan.drawing.html.data import archived, packed, themes_for, timeline_data
from pipeplan.drawing.html.page import ReportPage, html_page, report_data, report_page

__all__ = [
    "ReportPage",
    "archived",
    "asset",
    "html_page",
    "packed",
    "report_data",
    "report_page",
    "themes_for",
    "timeline_data",
]
