"""Shards: small Parquet files of numbered rows, cut from the inputs; the parts, their translations; the output.

A part has the name of its shard and appears when it is complete, so whatever part exists is done.
"""

import io
import itertools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seq2seq import storage
from seq2seq.bulk.inputs import ID, TRANSLATION, TRUNCATED, read_rows
from seq2seq.bulk.job import Job, write_record


@dataclass(frozen=True)
class Totals:
    """What an output holds."""

    rows: int
    truncated: int  # how many of them were cut at the length limit


def is_cut(job: Job) -> bool:
    """Whether all shards of a job are there."""
    return job.record.exists() and job.source.exists()


def cut(job: Job) -> None:
    """Copy the inputs into shards; the record is written last and says that they are all there."""
    storage.sweep(job.work)  # what a killed driver had begun to cut
    if job.parts.exists():  # of another job, whose record was removed
        shutil.rmtree(job.parts)
    # File by file, so that no shard spans two inputs.
    tables = (table for path in job.inputs for table in read_rows(path, job.column, job.shard_lines))
    first = itertools.count()
    with storage.replacing(job.source) as folder:
        for number, table in enumerate(tables):
            ids = pa.array(itertools.islice(first, len(table)), pa.int64())
            write_table(table.add_column(0, ID, ids), folder / f"part-{number:08}.parquet")
    write_record(job)


def shard_names(job: Job) -> list[str]:
    """The names of all shards, in order."""
    return sorted(path.name for path in job.source.iterdir())


def clear(job: Job) -> None:
    """Make room for the parts, and remove what workers of an earlier run left half done; none may be at work."""
    job.parts.mkdir(exist_ok=True)
    storage.sweep(job.parts)
    for tries in job.work.glob("*.tries"):
        tries.unlink()


def missing(job: Job) -> list[str]:
    """The names of the shards that have no part yet, in order. A part that was damaged is removed and done again."""
    names = shard_names(job)
    for path in (job.parts / name for name in names):
        if path.exists() and not _is_whole(path):
            path.unlink()
    return [name for name in names if not (job.parts / name).exists()]


def _is_whole(path: Path) -> bool:
    """Whether a Parquet file has all its bytes, which its end describes."""
    try:
        pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        return False
    return True


def write_table(table: pa.Table, path: Path) -> None:
    """A Parquet file that appears when it is complete."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    storage.write_file(path, [buffer.getvalue()])


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """One shard or part."""
    return pq.ParquetFile(path).read(columns)


def publish(job: Job) -> Totals:
    """Turn the parts, which are all there, into the output: in one step the folder of parts, or one text file."""
    storage.sweep(job.parts)
    parts = sorted(job.parts.iterdir())
    assert [path.name for path in parts] == shard_names(job)
    rows = sum(pq.read_metadata(path).num_rows for path in parts)
    truncated = sum(pc.sum(read_table(path, [TRUNCATED])[TRUNCATED]).as_py() or 0 for path in parts)
    if job.parquet:
        job.parts.rename(job.output)
    else:
        storage.write_file(job.output, _text_lines(parts))
    return Totals(rows, truncated)


def _text_lines(parts: list[Path]) -> Iterator[bytes]:
    for path in parts:
        for text in read_table(path, [TRANSLATION])[TRANSLATION].to_pylist():
            yield text.encode("utf-8") + b"\n"
