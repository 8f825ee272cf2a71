"""Names of pipeplan.drawing, made by ``python -m docs.build.stubs --write``."""

from pipeplan.drawing.from_timeline import IdleReasons as IdleReasons
from pipeplan.drawing.from_timeline import order_of as order_of
from pipeplan.drawing.from_timeline import view_of as view_of
from pipeplan.drawing.sizes import Look as Look
from pipeplan.drawing.sizes import LookOptions as LookOptions
from pipeplan.drawing.sizes import SIZES as SIZES
from pipeplan.drawing.sizes import SizeName as SizeName
from pipeplan.drawing.sizes import ThemeName as ThemeName
from pipeplan.drawing.text import text_of as text_of
from pipeplan.drawing.theme import DARK as DARK
from pipeplan.drawing.theme import LIGHT as LIGHT
from pipeplan.drawing.theme import Like as Like
from pipeplan.drawing.theme import MEMORY_PARTS as MEMORY_PARTS
from pipeplan.drawing.theme import TIME_PARTS as TIME_PARTS
from pipeplan.drawing.theme import Theme as Theme
from pipeplan.drawing.theme import theme_named as theme_named
from pipeplan.drawing.view import IdleGaps as IdleGaps
from pipeplan.drawing.view import LanePart as LanePart
from pipeplan.drawing.view import OpCosts as OpCosts
from pipeplan.drawing.view import Ratios as Ratios
from pipeplan.drawing.view import View as View
from pipeplan.drawing.view import Windows as Windows
