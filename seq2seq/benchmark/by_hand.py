"""CTranslate2 driven by hand on the exported model: what the package's own way to it costs is the difference."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from seq2seq.data.tokenizer import Tokenizer
from seq2seq.errors import UserError, first_line
from seq2seq.folder import CTRANSLATE2, TOKENIZER, find_model, load_info
from seq2seq.translation import conversion

BATCH_TOKENS = 1024  # source tokens that are decoded together


@contextmanager
def exported(model: str | None, precision: str) -> Iterator[Path]:
    """The model as `seq2seq export` writes it, for as long as it takes to load it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        conversion.export(find_model(model), path, precision)
        yield path


def open_by_hand(model: str | None, precision: str) -> Callable[[Sequence[str], int], list[str]]:
    """Sentences and a beam size to translations."""
    try:
        import ctranslate2  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise UserError("ct2-by-hand needs ctranslate2, which is not installed: pip install ctranslate2") from None
    folder = find_model(model)
    tokenizer, decode = Tokenizer.load(folder / TOKENIZER), load_info(folder).decode
    ids = {piece: index for index, piece in enumerate(tokenizer.pieces(range(len(tokenizer))))}
    with exported(model, precision) as path:
        try:
            translator = ctranslate2.Translator(
                str(path / CTRANSLATE2), compute_type=precision, inter_threads=torch.get_num_threads(), intra_threads=1
            )
        except (RuntimeError, ValueError) as error:
            raise UserError(f"ct2-by-hand: {first_line(error)}") from None

    def translate(sentences: Sequence[str], beam: int) -> list[str]:
        sources = [[*row, tokenizer.eos_id] for row in tokenizer.encode_all(list(sentences))]
        found = translator.translate_batch(
            [tokenizer.pieces(source) for source in sources],
            beam_size=beam,
            length_penalty=decode.length_penalty,
            max_decoding_length=int(decode.max_length_ratio * max(map(len, sources), default=0)) + 10,
            max_batch_size=BATCH_TOKENS,
            batch_type="tokens",
        )
        return [tokenizer.decode(ids[piece] for piece in result.hypotheses[0]) for result in found]

    return translate
