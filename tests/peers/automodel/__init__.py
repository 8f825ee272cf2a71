"""NeMo AutoModel beside us: what it makes of the keys of a recipe that we write.

``PIPEPLAN_AUTOMODEL_SOURCE`` names the folder of a clone to test in place of the package.
"""

import os
import sys

SOURCE = os.environ.get("PIPEPLAN_AUTOMODEL_SOURCE")

if SOURCE:
    sys.path.insert(0, SOURCE)
