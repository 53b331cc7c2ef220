"""Translated files, kept for a while under names that cannot be guessed. No name of a client's becomes a path."""

import re
import secrets
import time
from pathlib import Path

from seq2seq.service.refusal import Refusal, later

KINDS = {".txt": "text", ".html": "html"}  # endings of files that are translated, and how
MINUTES_KEPT = 10
MOST_FILES = 500
_NAME = re.compile(r"[0-9a-f]{32}\.(?:txt|html)")


class Shelf:
    """A folder that this service, in however many processes, has to itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check_room(self) -> None:
        """Refuse a file more where there are many, before it is translated."""
        if len(self._kept()) >= MOST_FILES:
            raise later(503, f"{MOST_FILES} translated files are kept already", 60 * MINUTES_KEPT / 2)

    def put(self, content: str, ending: str) -> str:
        """Keep a file; returns its name."""
        self.check_room()  # again: others were translated meanwhile
        name = secrets.token_hex(16) + ending
        (self.folder / name).write_text(content, encoding="utf-8", newline="")
        return name

    def find(self, name: str) -> Path:
        """The file of that name, while it is kept."""
        if not _NAME.fullmatch(name) or name not in self._kept():
            raise Refusal(404, "no such file, or no longer")
        return self.folder / name

    def _kept(self) -> list[str]:
        """Names of the files, once those that are too old are gone."""
        kept = []
        for path in self.folder.iterdir():
            try:
                if path.stat().st_mtime > time.time() - 60 * MINUTES_KEPT:
                    kept.append(path.name)
                else:
                    path.unlink(missing_ok=True)
            except FileNotFoundError:  # another process was quicker
                continue
        return kept
