import sys

from tests.simulation.soundness.suite import main

if __name__ == "__main__":
    sys.exit(main())
