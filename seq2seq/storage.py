"""Files and folders that are there whole or not at all, whenever the process or the machine dies.

A new version is written under a temporary name beside the old one, flushed to the disk, and put in its place by one
operation of the file system. What a killed process leaves behind is hidden (`.NAME.xxxxxxxx.new`) and can be swept.
"""

import ctypes
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

LEFTOVER = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.(?P<kind>new|old)")
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux's renameat2(2)


def write_file(path: Path, chunks: Iterable[bytes]) -> None:
    """Bytes to a file that appears, or changes, when it is complete."""
    temporary = _hidden(path, "new")
    try:
        with temporary.open("wb") as stream:
            stream.writelines(chunks)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        _flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """UTF-8 text to a file that appears, or changes, when it is complete."""
    write_file(path, [text.encode("utf-8")])


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder` that takes its place once it is complete and on disk."""
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = _hidden(folder, "new")
    temporary.mkdir()
    try:
        yield temporary
        for path in [*temporary.rglob("*"), temporary]:
            _flush(path)
        if folder.exists():
            _exchange(temporary, folder)
        else:
            temporary.rename(folder)
        _flush(folder.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def obstacle(folder: Path) -> Path | None:
    """What stands where a folder is to be made and is none: the path itself, or one above it."""
    nearest = next((path for path in (folder, *folder.parents) if os.path.lexists(path)), folder.parent)
    return None if nearest.is_dir() else nearest


def discard(folder: Path) -> None:
    """Delete a folder; whoever looks sees it whole or not at all."""
    doomed = _hidden(folder, "old")
    folder.rename(doomed)
    shutil.rmtree(doomed)


def sweep(folder: Path) -> None:
    """Delete what killed writers left in a folder that nobody else writes to now."""
    for path in folder.iterdir() if folder.is_dir() else ():
        found = LEFTOVER.fullmatch(path.name)
        if found is None:
            continue
        if found["kind"] == "old" and not (folder / found["name"]).exists():
            path.rename(folder / found["name"])  # died between the two renames of `_exchange`
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _hidden(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.{kind}")


def _exchange(new: Path, old: Path) -> None:
    """Put `new` in the place of `old`, in one step where the system can; else `sweep` mends a half-done change."""
    if _swap(new, old):
        return
    aside = _hidden(old, "old")
    old.rename(aside)
    try:
        new.rename(old)
    except BaseException:
        aside.rename(old)
        raise
    shutil.rmtree(aside)


def _swap(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system or its file system cannot."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux
        return False
    return not renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
