"""`python -m kvstage_proofs` is `kvstage`."""

import sys

from .commands.main import main

if __name__ == "__main__":
    sys.exit(main())
