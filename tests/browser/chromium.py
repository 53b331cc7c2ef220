"""Debian's Chromium, and what a browser test needs to know of it."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 60_000  # milliseconds; a page is ready much sooner unless the machine is busy
WIDE, PHONE = (1280, 900), (390, 844)
MISSING = [
    name for name, found in (("playwright", find_spec("playwright")), (CHROMIUM, CHROMIUM.exists())) if not found
]


def skip_without_browser() -> None:
    """Skip a module in one line where there is no browser; never in CI."""
    if MISSING and not os.environ.get("CI"):
        pytest.skip(f"the page is not tested: {MISSING[0]} is missing", allow_module_level=True)
