"""Sequence-level distillation (Kim and Rush 2016): training sources with a teacher's translations.

A student learns from them beside the corpus: what a teacher, mostly an ensemble, says is more regular than what people
say.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from tqdm import tqdm

from seq2seq.config import DataConfig
from seq2seq.data.corpus import load_split
from seq2seq.data.splits import Example, Pair, fingerprint, group_references
from seq2seq.errors import UserError
from seq2seq.evaluation import sentence_scores
from seq2seq.folder import find_model, load_info
from seq2seq.folder import fingerprint as folder_fingerprint
from seq2seq.storage import write_text
from seq2seq.translation.result import Alternative
from seq2seq.translation.translator import Translator

CHUNK = 2048  # sources that are translated together, and then are safe on the disk


def distil(data: DataConfig, models: Sequence[str], output: Path, beam_size: int, n_best: int) -> int:
    """Write `source TAB translation` for every distinct training source of a corpus; returns how many.

    Several models translate together, as an ensemble. Finished parts lie in a folder beside the output until all are
    there, so the same call goes on where it was interrupted.
    """
    translator = Translator.from_pretrained(models[0], ensemble=models[1:])
    languages = (translator.info.source, translator.info.target)
    if languages != (data.source, data.target):
        raise UserError(f"the data is {data.source}-{data.target}, the model {'-'.join(languages)}")
    pairs = load_split(data, "train")
    examples = group_references(pairs)
    folder = output.with_name(f"{output.name}.{_job(pairs, models, beam_size, n_best)}")
    parts = [folder / f"{start:08d}.tsv" for start in range(0, len(examples), CHUNK)]
    for number, part in enumerate(tqdm(parts, unit="part")):
        if not part.exists():
            chunk = distilled(translator, examples[number * CHUNK : (number + 1) * CHUNK], beam_size, n_best)
            folder.mkdir(parents=True, exist_ok=True)
            write_text(part, "".join(map(_line, chunk)))
    write_text(output, "".join(part.read_text(encoding="utf-8") for part in parts))
    shutil.rmtree(folder)
    return len(examples)


def _line(pair: Pair) -> str:
    return "\t".join(pair.without_tabs()) + "\n"


def _job(pairs: Iterable[Pair], models: Sequence[str], beam_size: int, n_best: int) -> str:
    """What a part depends on, in short."""
    folders = map(find_model, models)
    weights = [folder_fingerprint(folder, load_info(folder)) for folder in folders]
    settings = json.dumps([fingerprint(pairs), weights, beam_size, n_best])
    return hashlib.sha256(settings.encode()).hexdigest()[:12]


def distilled(translator: Translator, examples: Sequence[Example], beam_size: int, n_best: int) -> list[Pair]:
    """Each source with that of the teacher's n best translations which is nearest to a reference.

    A translation that the length limit has cut teaches nothing: there the source keeps its first reference.
    """
    sources = [example.source for example in examples]
    results = translator.translate(sources, beam_size=beam_size, n_best=n_best, attention=False)
    return [
        Pair(source, references[0] if result.truncated else nearest(result.best(n_best), references))
        for (source, references), result in zip(examples, results, strict=True)
    ]


def nearest(alternatives: Sequence[Alternative], references: Sequence[str]) -> str:
    """The text with the best chrF2 (Kim and Rush, section 3.3, take BLEU); of equals the model's first choice."""
    texts = [alternative.text for alternative in alternatives]
    if len(texts) == 1:
        return texts[0]
    scores = sentence_scores(texts, [references] * len(texts))
    return max(zip(scores, texts, strict=True), key=lambda item: item[0].chrf)[1]
