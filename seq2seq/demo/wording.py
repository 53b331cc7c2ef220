"""What the page says. Pure functions from a model's record or a translation to text."""

from html import escape

from seq2seq.errors import UserError
from seq2seq.folder import ModelInfo
from seq2seq.translation.result import SentenceTranslation, Translation

MAX_CHARACTERS = 5000
LABEL_CHARACTERS = 60  # of a sentence in the list of sentences
LANGUAGES = {"de": "German", "en": "English", "es": "Spanish", "fr": "French", "it": "Italian", "pt": "Portuguese"}

HOW_TO_READ = """\
Every word of the translation is written by a decoder that looks at the source while it writes. In each of its layers,
each head compares a query q of the place that it writes with a key k of every source word and turns the likeness into
weights:

    A = softmax(Q K^T / sqrt(d_head))

- **Rows** are the words of the translation, **columns** the words of the source. A row says where the decoder looked
  while it wrote that word, or (the line by the map says so) when it had just read it; the darker the cell, the larger
  the weight.
- The model reads subword **pieces**, not words. For words, the weights of the pieces of a source word are added and
  those of the pieces of a target word averaged.
- Over all source pieces and `</s>` a row sums to 1. Without `</s>` on show it sums to less, by what `</s>` drew.
- Attention is where the model *looked*, which is often, not always, what a word *means*. Layers and heads differ:
  some align words, some watch the neighbours, some do nothing on this sentence.
"""

ABOUT_END = (
    "`</s>` marks the end of a sentence. The weights of a head always sum to 1, so a head that has nothing to look up "
    "for a word must put its weight somewhere: it parks it on `</s>`. A head that was taught to align does so for "
    "a word that comes from nowhere."
)


def language(code: str) -> str:
    """English name of a language code, or the code itself."""
    return LANGUAGES.get(code, code)


def check_length(text: str) -> None:
    """Refuse what would keep other visitors waiting."""
    if len(text) > MAX_CHARACTERS:
        raise UserError(
            f"The text has {len(text):,} characters, this page takes {MAX_CHARACTERS:,}. "
            "Please translate it in parts; the command seq2seq translate has no limit."
        )


def notice(result: Translation) -> str:
    """What a visitor should know about a translation; empty if there is nothing to say."""
    if not result.source.strip():
        return "Type a sentence first, then press Translate."
    if not result.sentences:
        return "There is nothing to translate here: a text without words passes through as it is."
    if result.truncated:
        return "**Cut short:** the translation of at least one sentence reached the length limit of the model."
    return ""


def sentence_choices(result: Translation | None) -> list[tuple[str, int]]:
    """Labelled indices of the translated sentences."""
    sentences = result.sentences if result is not None else []
    return [(f"{index + 1}. {_shortened(sentence.source)}", index) for index, sentence in enumerate(sentences)]


def _shortened(text: str) -> str:
    return text if len(text) <= LABEL_CHARACTERS else text[: LABEL_CHARACTERS - 1].rstrip() + "…"


def head_name(head: int | None) -> str:
    """One head, or their mean."""
    return "mean over heads" if head is None else f"head {head}"


def describe_choice(info: ModelInfo, layer: int, head: int | None) -> str:
    """Which layer and head are shown, and how they relate to the ones that align best."""
    shown = f"Shown: **layer {layer}, {head_name(head)}** (layers and heads count from 0)"
    best = info.alignment
    if best is not None and best.step == "input" and (layer, head) == (best.layer, best.head):
        shown += ", read where the decoder has just read the word of the row"
    if best is None:
        return f"{shown}. Which layer of this model aligns best has not been measured; the page starts in the middle."
    if best.taught:
        why = "it was taught which words belong together"
    else:
        why = "its word links agree best with those of a model of the other direction"
    if best.aer is not None:
        where = "" if best.gold is None else f" on the pairs “{best.gold}”"
        why += f": its alignment error rate{where} is {best.aer:.1f} %"
    if best.taught:
        why += "; the row of a word without a source is nearly empty"
    if (layer, head) == (best.layer, best.head):
        return f"{shown}, chosen because {why}."
    return f"{shown}. The page starts with layer {best.layer}, {head_name(best.head)}: {why}."


def alternatives_table(sentence: SentenceTranslation, alpha: float) -> str:
    """The n best translations of a sentence as an HTML table; empty if there is only one."""
    if len(sentence.alternatives) == 1:
        return ""
    rows = "".join(
        f"<tr><td>{rank}</td><td>{found.score:.3f}</td><td>{escape(found.text)}</td></tr>"
        for rank, found in enumerate(sentence.alternatives, start=1)
    )
    return (
        f'<table class="alternatives"><caption>Best translations of this sentence</caption>'
        f'<thead><tr><th scope="col">rank</th><th scope="col">score</th><th scope="col">text</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        f'<p class="alternatives-note">score = log-probability / length^{alpha:g}, the end mark &lt;/s&gt; counted; '
        f"the nearer to 0, the better. A text that the search found twice is listed once.</p>"
    )
