"""`python scripts/train.py CONFIG ...`: the same as `seq2seq train CONFIG ...`."""

import sys

from seq2seq.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
