import sys

from tests.torture.main import main

if __name__ == "__main__":
    sys.exit(main())
