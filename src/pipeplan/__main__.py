"""``python -m pipeplan``."""

import sys

from pipeplan.cli import main

if __name__ == "__main__":  # processes of the server `pipeplan mcp` load this file under another name
    sys.exit(main())
