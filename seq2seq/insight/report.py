"""An evaluation as one HTML file: scores, where they come from, and the sentences that tell most about a system."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from pathlib import Path

from seq2seq.evaluation import (
    NAMES,
    Comparison,
    References,
    Scores,
    SentenceScore,
    score_subset,
    sentence_scores,
    signatures,
)
from seq2seq.insight.breakdown import best, by_length, exact_matches, gains, worst
from seq2seq.insight.heatmap import HeatMap, cross_attention, heatmap_fragment, heatmap_script, heatmap_style
from seq2seq.insight.page import html_page
from seq2seq.translation.result import SentenceTranslation, Translation
from seq2seq.translation.translator import Translator

SHOWN = 5  # sentences of a kind
LOWER_IS_BETTER = {"TER"}

Draw = Callable[[int], str]  # the attention maps of a sentence


@dataclass(frozen=True)
class System:
    """What translated, its translations, one a sentence, and what they score."""

    name: str
    hypotheses: Sequence[str]
    scores: Scores
    truncated: int | None = None  # unknown of translations that come from a file


@dataclass(frozen=True)
class Evaluation:
    """All that a report tells; `facts` are names and values of whatever else a reader should know."""

    title: str
    sources: Sequence[str]
    references: References
    system: System
    baseline: System | None
    comparisons: Sequence[Comparison]
    facts: dict[str, str]

    @property
    def systems(self) -> list[System]:
        """The system and, if there is one, the baseline."""
        return [self.system] if self.baseline is None else [self.system, self.baseline]


def report_page(evaluation: Evaluation, translator: Translator, translations: Sequence[Translation]) -> str:
    """A complete HTML file. `translations` are the system's; attention is computed only for those that are shown."""
    body = "\n".join(
        [
            f"<header><h1>{escape(evaluation.title)}</h1>{_key(evaluation)}</header>",
            _section("Scores", _scores(evaluation)),
            _section("In numbers", _numbers(evaluation)),
            _section("By length of the source", _lengths(evaluation)),
            *_sentences(evaluation, lambda row: _maps(translator, translations[row])),
            _section("How this was measured", _facts(evaluation)),
        ]
    )
    return html_page(
        evaluation.title, body, look="report", style=report_style() + heatmap_style(), script=heatmap_script()
    )


@cache
def report_style() -> str:
    """CSS of the report, light and dark."""
    return Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def _section(heading: str, content: str) -> str:
    return f"<section><h2>{escape(heading)}</h2>\n{content}</section>"


def _key(evaluation: Evaluation) -> str:
    """Which colour stands for which system."""
    roles = ("system", "baseline")
    names = (
        f'<li class="{role}"><span class="role">{role}</span> {escape(system.name)}</li>'
        for role, system in zip(roles, evaluation.systems, strict=False)
    )
    return f'<ul class="key">{"".join(names)}</ul>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table of HTML cells; the first of each row is its header."""
    heads = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    lines = []
    for first, *cells in rows:
        columns = zip(head[1:], cells, strict=True)  # narrow screens show the name of the column beside each cell
        lines.append(
            f'<tr><th scope="row">{first}</th>'
            + "".join(f'<td data-column="{column}">{cell}</td>' for column, cell in columns)
            + "</tr>"
        )
    body = "\n".join(lines)
    return f'<div class="box"><table class="{kind}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def _scores(evaluation: Evaluation) -> str:
    head = ["", "system"]
    if evaluation.baseline:
        head += ["baseline", "difference", "p (bootstrap)", "p (randomisation)"]
    compared = {comparison.metric: comparison for comparison in evaluation.comparisons}
    rows = []
    for key, name in NAMES.items():
        row = [
            f"{name} {'↓' if name in LOWER_IS_BETTER else '↑'}",
            *(_score(s.scores, key) for s in evaluation.systems),
        ]
        if evaluation.baseline:
            row += _difference(compared[name])
        rows.append(row)
    found = signatures(evaluation.system.scores, evaluation.comparisons)
    lines = "".join(f"<li><code>{escape(line)}</code></li>" for line in found)
    return f'{_table(head, rows, "scores")}{_reading(evaluation)}<ul class="signatures">{lines}</ul>'


def _score(scores: Scores, key: str) -> str:
    value, _, interval = scores.shown(key).partition(" (")
    return f"<b>{value}</b>" + (f" <small>{escape(interval.rstrip(')'))}</small>" if interval else "")


def _difference(comparison: Comparison) -> list[str]:
    change = comparison.score - comparison.baseline
    good = (change < 0) == (comparison.metric in LOWER_IS_BETTER)
    tests = (comparison.bootstrap, comparison.randomisation)
    kind = ("better" if good else "worse") if change and all(test.p_value < 0.05 for test in tests) else "unsure"
    return [f'<span class="{kind}">{change:+.1f}</span>', *(f"{test.p_value:.4f}" for test in tests)]


def _reading(evaluation: Evaluation) -> str:
    """How to read the table."""
    text = "↑ higher is better, ↓ lower is better. μ ± is the 95 % confidence interval by bootstrap resampling."
    if evaluation.baseline:
        text += (
            " p is how often chance alone would make a difference as large; it is usually taken for real where p is "
            "below 0.05, and coloured here where both tests say so."
        )
    return f'<p class="note">{text}</p>'


def _numbers(evaluation: Evaluation) -> str:
    systems, references = evaluation.systems, evaluation.references
    count = len(references)
    ratios = [score_subset(system.hypotheses, references).length_ratio for system in systems]
    exact = [exact_matches(system.hypotheses, references) for system in systems]
    cut = ["unknown" if system.truncated is None else f"{system.truncated:,}" for system in systems]
    rows = [
        ["length, tokens per reference token", *(f"{ratio:.3f}" for ratio in ratios)],
        ["equal to a reference", *(f"{number:,} <small>{number / count:.1%}</small>" for number in exact)],
        ["truncated at the length limit", *cut],
    ]
    total = sum(map(len, references))
    line = f'<p class="note">{count:,} sentences with {total:,} references.</p>'
    return _table(["", "system", "baseline"][: 1 + len(systems)], rows) + line


def _lengths(evaluation: Evaluation) -> str:
    buckets = by_length(evaluation.sources, evaluation.references, [system.hypotheses for system in evaluation.systems])
    rows = [
        [
            bucket.label,
            f"{bucket.count:,}",
            "".join(_bar(scores.bleu, place) for place, scores in enumerate(bucket.scores)),
            "".join(_bar(scores.chrf, place) for place, scores in enumerate(bucket.scores)),
        ]
        for bucket in buckets
    ]
    note = '<p class="note">Scores of few sentences are of little weight.</p>'
    return _table(["words", "count", "BLEU", "chrF2"], rows, "lengths") + note


def _bar(value: float, place: int) -> str:
    role = "baseline" if place else "system"
    return f'<div class="bar {role}" style="--value:{value:.1f}"><i></i><span>{value:.1f}</span></div>'


def _sentences(evaluation: Evaluation, draw: Draw) -> list[str]:
    """Sections of sentences, one for each way of choosing them."""
    lengths = [len(source.split()) for source in evaluation.sources]
    scores = [sentence_scores(system.hypotheses, evaluation.references) for system in evaluation.systems]
    chosen = {}
    if evaluation.baseline:
        chosen["Most gained on the baseline"] = gains(scores[1], scores[0], SHOWN)
        chosen["Most lost to the baseline"] = gains(scores[0], scores[1], SHOWN)
    chosen["Worst sentences"] = worst(scores[0], lengths, SHOWN)
    chosen["Best sentences"] = best(scores[0], lengths, SHOWN)
    by_row = [[list_[row] for list_ in scores] for row in range(len(lengths))]
    other = "the baseline" if evaluation.baseline else "the nearest reference"
    note = f'<p class="note">Marked are the words in which the system and {other} differ.</p>'
    return [
        _section(
            heading, note + "\n".join(_sentence(evaluation, row, by_row[row], draw) for row in rows) or "<p>None.</p>"
        )
        for heading, rows in chosen.items()
    ]


def _sentence(evaluation: Evaluation, row: int, scores: Sequence[SentenceScore], draw: Draw) -> str:
    """One sentence: source, references, what each system made of it, and the attention of the system."""
    references = evaluation.references[row]
    texts = [system.hypotheses[row] for system in evaluation.systems]
    marked = marked_differences(texts[0], texts[1] if len(texts) > 1 else _nearest(texts[0], references))
    lines = [_line("source", escape(evaluation.sources[row]))]
    lines += [_line("reference", escape(reference)) for reference in references]
    for role, text, found in zip(("system", "baseline"), marked, scores, strict=False):
        numbers = f"<small>chrF2 {found.chrf:.1f}, BLEU {found.bleu:.1f}</small>"
        lines.append(_line(role, f"{text} {numbers}"))
    return f"<article><h3>Sentence {row + 1:,}</h3><dl>{''.join(lines)}</dl>{draw(row)}</article>"


def _line(role: str, content: str) -> str:
    return f'<div class="{role}"><dt>{role}</dt><dd dir="auto">{content}</dd></div>'


def marked_differences(one: str, other: str) -> tuple[str, str]:
    """Two texts as HTML with the words marked that the other one does not have in that place."""
    left, right = one.split(), other.split()
    marked: tuple[list[str], list[str]] = ([], [])
    for tag, i, j, k, m in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for words, parts in ((left[i:j], marked[0]), (right[k:m], marked[1])):
            if words:
                text = escape(" ".join(words))
                parts.append(text if tag == "equal" else f"<mark>{text}</mark>")
    return " ".join(marked[0]), " ".join(marked[1])


def _nearest(text: str, references: Sequence[str]) -> str:
    """The reference that shares most with a text, word by word."""
    return max(references, key=lambda ref: difflib.SequenceMatcher(None, text.split(), ref.split()).ratio())


def _maps(translator: Translator, translation: Translation) -> str:
    """The cross-attention of a translation that was made without, one map a model call."""
    sentences = translation.sentences
    if not sentences:
        return '<p class="note">Nothing in it was for the model to translate.</p>'
    weights = translator.engine.attention(
        [sentence.source_ids for sentence in sentences], [sentence.target_ids for sentence in sentences]
    )
    maps = "".join(_map(replace(sentence, weights=found)) for sentence, found in zip(sentences, weights, strict=True))
    return f"<details><summary>Cross-attention</summary>{maps}</details>"


def _map(sentence: SentenceTranslation) -> str:
    layer, head = sentence.default_choice
    caption = f"layer {layer}, " + ("mean over heads" if head is None else f"head {head}")
    return heatmap_fragment(HeatMap(*cross_attention(sentence, layer, head), caption))


def _facts(evaluation: Evaluation) -> str:
    lines = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in evaluation.facts.items()
    )
    return f'<dl class="facts">{lines}</dl>'
