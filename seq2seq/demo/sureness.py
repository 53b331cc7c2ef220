"""How sure to be of a translation, as it stands on the page: a line a sentence, and the words in doubt marked."""

from collections.abc import Sequence
from html import escape

from seq2seq.folder import ModelInfo
from seq2seq.translation.alignment import find_words
from seq2seq.translation.confidence import DOUBT
from seq2seq.translation.result import Confidence, SentenceTranslation, Translation

LEFT_OUT, MADE_UP = "may have been left out", "may have no source"
LEGEND = (
    f'<p class="sureness-note"><span class="omitted">underlined</span>: {LEFT_OUT}; '
    f'<span class="invented">marked</span>: {MADE_UP}. An estimate from the likelihood of the words and from '
    "attention, there and back; point at a word, or touch it, to see how likely.</p>"
)


def sureness(info: ModelInfo, result: Translation) -> str:
    """HTML about every translated sentence; empty where nothing was judged."""
    judged = [(one, one.confidence) for one in result.sentences if one.confidence is not None]
    if not judged:
        return ""
    shown = "".join(_sentence(info, one, sure) for one, sure in judged)
    in_doubt = any(_doubtful(sure.omitted) or _doubtful(sure.invented) for _, sure in judged)
    return f'<div class="sureness">{shown}{LEGEND if in_doubt else ""}</div>'


def _sentence(info: ModelInfo, sentence: SentenceTranslation, sure: Confidence) -> str:
    line = f"<b>{100 * sure.right:.0f} %</b> sure that the meaning is kept"
    if not _doubtful(sure.omitted) and not _doubtful(sure.invented):
        return f"<p>{line}; no word seems to be left out or made up.</p>"
    source = _marked(sentence.source, sentence.source_words, sure.omitted, "omitted", LEFT_OUT)
    target = _marked(sentence.text, sentence.target_words, sure.invented, "invented", MADE_UP)
    return f'<p>{line}.</p><p lang="{info.source}">{source}</p><p lang="{info.target}">{target}</p>'


def _marked(text: str, words: Sequence[str], likely: Sequence[float], style: str, says: str) -> str:
    """The text, with the words in doubt in a style of their own that says why."""
    place, parts = 0, []
    for (start, end), share in zip(find_words(text, words), likely, strict=True):
        if share < DOUBT or start == end:
            continue
        word, why = escape(text[start:end]), f"{says}: {100 * share:.0f} %"
        shown = f'<span class="{style}" tabindex="0" data-why="{why}" aria-label="{word}, {why}">{word}</span>'
        parts += [escape(text[place:start]), shown]
        place = end
    return "".join([*parts, escape(text[place:])])


def _doubtful(likely: Sequence[float]) -> bool:
    return any(share >= DOUBT for share in likely)
