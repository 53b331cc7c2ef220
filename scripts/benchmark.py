"""`python scripts/benchmark.py all`: the speed of this machine. See `--help`, and docs/performance.md."""

import sys

from seq2seq.benchmark.command import main

if __name__ == "__main__":
    sys.exit(main())
