"""Freed memory that a process keeps: asking for a large block again costs no page faults."""

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource, sys, torch
from seq2seq.memory import keep_freed_memory
if sys.argv[1] == "kept":
    assert keep_freed_memory()
for _ in range(10):
    torch.ones(16_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.ones(16_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc")
def test_a_large_block_is_not_fetched_anew():
    def faults(how: str) -> int:
        done = subprocess.run([sys.executable, "-c", COUNT, how], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert faults("kept") < faults("given back") / 10
