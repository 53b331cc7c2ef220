"""One model that translates shard after shard; whoever runs many of them decides which shard goes where."""

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import torch

from seq2seq.bulk.inputs import TRANSLATION, TRUNCATED
from seq2seq.bulk.job import Job, fingerprint
from seq2seq.bulk.shards import read_table, write_table
from seq2seq.errors import UserError
from seq2seq.folder import find_model
from seq2seq.translation.result import Translation
from seq2seq.translation.translator import Translator

MOST_TRIES = 5  # of a shard whose worker dies; Ray itself would try for ever


class Worker:
    """Called with the name of a shard, it writes the part of the same name; one a process.

    `threads` is how many processors it uses, `chunk` how many lines are translated together.
    """

    def __init__(self, job: Job, threads: int, chunk: int) -> None:
        self.job, self.threads, self.chunk = job, threads, chunk
        self.translator: Translator | None = None  # comes with the first shard: Ray would bury an error in its own here

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Do the shard that the batch names; what goes wrong is an answer too, as one line.

        Takes `{"shard": [name]}`, returns `{"sentences": [how many went through the model], "error": [""]}`.
        """
        [name] = batch["shard"]
        sentences, error = 0, ""
        try:
            if not (self.job.parts / name).exists():  # Ray may ask again for what a lost node had done
                self._count_tries(name)
                sentences = self._write_part(name)
        except (UserError, OSError, pa.ArrowException) as problem:
            error = str(problem) or type(problem).__name__
        return {"sentences": [sentences], "error": [error]}

    def _count_tries(self, name: str) -> None:
        """Give up a shard that kills every worker, as too little memory does."""
        tries = self.job.work / f"{name}.tries"
        with tries.open("ab") as stream:
            stream.write(b".")
        if tries.stat().st_size > MOST_TRIES:
            raise UserError(
                f"{self.job.source / name}: the worker died {MOST_TRIES} times over this shard; "
                "if memory is short, start again with fewer --workers on each machine"
            )

    def _write_part(self, name: str) -> int:
        """Translate one shard; returns how many sentences went through the model."""
        self.translator = self.translator or self._load()
        table = read_table(self.job.source / name)
        texts: list[str | None] = table[self.job.column].to_pylist()
        done = self._translate(self.translator, [text or "" for text in texts])
        translations = [None if text is None else result.text for text, result in zip(texts, done, strict=True)]
        table = table.append_column(TRANSLATION, pa.array(translations, pa.string()))
        table = table.append_column(TRUNCATED, pa.array([result.truncated for result in done], pa.bool_()))
        write_table(table, self.job.parts / name)
        return sum(len(result.sentences) for result in done)

    def _translate(self, translator: Translator, texts: Sequence[str]) -> list[Translation]:
        done: list[Translation] = []
        for start in range(0, len(texts), self.chunk):
            done += translator.translate(
                texts[start : start + self.chunk],
                beam_size=self.job.beam_size,
                length_penalty=self.job.length_penalty,
                attention=False,
            )
        return done

    def _load(self) -> Translator:
        """The model, if it is the one that the driver saw."""
        torch.set_num_threads(self.threads)  # else every worker starts a thread for every processor
        folder = find_model(self.job.model)
        if fingerprint(folder) != self.job.fingerprint:
            raise UserError(f"{folder} on {os.uname().nodename} is not the model that the job was begun with")
        translator = Translator.from_pretrained(folder)
        translator.model.to(self.job.device)
        return translator
