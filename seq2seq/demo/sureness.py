"""How sure to be of a translation, as it stands on the page: a line a sentence, and the words in doubt marked."""

from collections.abc import Sequence
from html import escape

from seq2seq.folder import ModelInfo
from seq2seq.translation.alignment import find_words
from seq2seq.translation.confidence import DOUBT
from seq2seq.translation.result import Confidence, SentenceTranslation, Translation

MOST = 0.95
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
    numbers = [f"{number}. " for number in range(1, len(judged) + 1)] if len(judged) > 1 else [""]
    shown = "".join(_sentence(info, number, *each) for number, each in zip(numbers, judged, strict=True))
    return f'<div class="sureness">{shown}{LEGEND if "tabindex" in shown else ""}</div>'


def _sentence(info: ModelInfo, number: str, sentence: SentenceTranslation, sure: Confidence) -> str:
    line = f"{number}{_percent(sure.right)} sure that the meaning is kept"
    source = _marked(sentence.source, sentence.source_words, sure.omitted, "omitted", LEFT_OUT)
    target = _marked(sentence.text, sentence.target_words, sure.invented, "invented", MADE_UP)
    texts = [(info.source, source), (info.target, target)]
    return f"<p>{line}</p>" + "".join(f'<p lang="{code}">{text}</p>' for code, text in texts if "tabindex" in text)


def _percent(right: float) -> str:
    """No more exact than three hundred grades allow."""
    if right > MOST:
        return f"<b>over {100 * MOST:.0f} %</b>"
    return f"<b>{100 * right:.0f} %</b>" if right > 1 - MOST else f"<b>under {100 - 100 * MOST:.0f} %</b>"


def _marked(text: str, words: Sequence[str], likely: Sequence[float], style: str, says: str) -> str:
    """The text, with the words in doubt in a style of their own that says why."""
    place, parts = 0, []
    for (start, end), share in zip(find_words(text, words), likely, strict=True):
        if share < DOUBT or start == end:
            continue
        word, why = escape(text[start:end]), f"{says}: {100 * share:.0f} %"
        said = f'role="note" aria-label="{word}, {why}"'
        parts += [
            escape(text[place:start]),
            f'<span class="{style}" tabindex="0" data-why="{why}" {said}>{word}</span>',
        ]
        place = end
    return "".join([*parts, escape(text[place:])])
