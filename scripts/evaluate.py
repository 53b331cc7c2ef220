"""`python scripts/evaluate.py --dataset NAME ...`: the same as `seq2seq evaluate --dataset NAME ...`."""

import sys

from seq2seq.cli import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
