"""The views of the explorer by name, for the command line, the page and Python alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from seq2seq.errors import UserError
from seq2seq.insight import (
    contexts,
    cost,
    decoding,
    drawing,
    example,
    geometry,
    heads,
    masking,
    occlusion,
    recipe,
    sides,
    steps,
)
from seq2seq.insight.figures import panels_png
from seq2seq.insight.panels import Panel, Prose, as_json, as_text
from seq2seq.insight.scene import KINDS, Kind, Scene, stage
from seq2seq.translation.translator import Translator


@dataclass(frozen=True)
class Question:
    """What is asked of a view. What a view does not need it ignores; what is left out has a sensible default."""

    translator: Translator
    text: str
    beside: str | None = None  # a second sentence with the same word
    kind: Kind = "encoder"
    layer: int | None = None
    head: int | None = None
    word: str | int | None = None  # that asks: a piece's text, or its number
    key: str | int | None = None  # that answers
    scaled: bool = True
    beam_size: int | None = None
    until: int | None = None  # step of the search up to which it is shown
    force: str | None = None  # words that the search must write, "step=word, ..."
    forbid: str | None = None  # words that it may not begin
    kept: Scene | None = field(default=None, repr=False)  # of this very text, so that it is not translated again

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UserError(f"kind {self.kind!r} is not one of {', '.join(KINDS)}")

    @cached_property
    def scene(self) -> Scene:
        """The text's translation, laid open."""
        return self.kept or stage(self.translator, self.text)

    def layer_of(self, kind: Kind) -> int:
        """The layer asked for, or the middle one."""
        return len(self.scene.attentions(kind)) // 2 if self.layer is None else self.layer


@dataclass(frozen=True)
class View:
    """One view: what it is called, which of the page's controls it takes, and how it answers."""

    title: str
    takes: frozenset[str]
    sections: tuple[str, ...]  # of docs/attention.md
    function: Callable[..., Any] | None  # that makes its numbers
    answer: Callable[[Question], list[Panel]]


def _contexts(asked: Question) -> list[Panel]:
    """Without a second sentence the word is held against itself, said alone."""
    word = "bank" if asked.word is None else str(asked.word)
    beside = asked.beside
    if beside is None:
        beside = next((text for text in contexts.PAIRS.get(word, ()) if text != asked.text), word)
    return contexts.panels(contexts.contexts(asked.scene, stage(asked.translator, beside or word), word))


def _geometry(asked: Question) -> list[Panel]:
    place = asked.scene.place(asked.word, asked.kind)
    return geometry.panels(
        geometry.geometry(asked.scene, asked.kind, asked.layer_of(asked.kind), asked.head or 0, place)
    )


def _steps(asked: Question) -> list[Panel]:
    scene, kind = asked.scene, asked.kind
    asking = scene.place(asked.word, kind)
    answering = scene.place(asked.key, kind, asked=False)
    return steps.panels(
        steps.steps(scene, kind, asked.layer_of(kind), asked.head or 0, asking, answering, scaled=asked.scaled)
    )


def _masking(asked: Question) -> list[Panel]:
    return masking.panels(masking.masking(asked.scene, asked.layer_of("decoder"), asked.head or 0))


def _heads(asked: Question) -> list[Panel]:
    return heads.panels(asked.scene, heads.load_survey(asked.translator))


def _decoding(asked: Question) -> list[Panel]:
    edits = decoding.read_edits(asked.translator.tokenizer, asked.force, asked.forbid)
    own = min(asked.translator.info.decode.beam_size, decoding.WIDEST)
    beam_size = own if asked.beam_size is None else asked.beam_size
    return decoding.panels(decoding.decoding(asked.scene, beam_size, edits), asked.until)


def _view(title: str, takes: str, sections: Sequence[str], function: Any, answer: Callable[..., list[Panel]]) -> View:
    return View(title, frozenset(takes.split()), tuple(sections), function, answer)


VIEWS: dict[str, View] = {
    "contexts": _view(
        "Static against contextual", "word beside", ["Embedding and position", "Residual"], contexts.contexts, _contexts
    ),
    "geometry": _view(
        "Geometry",
        "kind layer head asking",
        ["Query, key, value", "Scores and weights"],
        geometry.geometry,
        _geometry,
    ),
    "steps": _view(
        "q, k, v step by step",
        "kind layer head asking answering scaled",
        ["Query, key, value", "Scores and weights", "Masks", "Heads", "Residual"],
        steps.steps,
        _steps,
    ),
    "example": _view(
        "The chapter's worked example",
        "",
        ["Query, key, value", "Scores and weights"],
        example.example,
        lambda asked: example.panels(example.example()),
    ),
    "sides": _view(
        "Self- and cross-attention",
        "layer head",
        ["Query, key, value", "Residual"],
        sides.panels,
        lambda asked: sides.panels(asked.scene, asked.layer_of("cross"), asked.head),
    ),
    "mask": _view("Causal mask", "layer head", ["Masks"], masking.masking, _masking),
    "heads": _view("Heads", "", ["Heads"], heads.statistics, _heads),
    "decoding": _view("Decoding", "beam_size until force forbid", ["Search", "Cache"], decoding.decoding, _decoding),
    "cost": _view(
        "Cost", "", ["Cache", "Scores and weights"], cost.cost, lambda asked: cost.panels(cost.cost(asked.scene))
    ),
    "recipe": _view("Numeric recipe and sources", "", [], None, lambda asked: recipe.panels()),
    "occlusion": _view(
        "Is attention an explanation?",
        "",
        ["Explanation"],
        occlusion.occlusions,
        lambda asked: occlusion.panels(asked.scene),
    ),
}


def sources(view: str) -> list[Panel]:
    """Equations and functions behind a view, for the end of its page."""
    return recipe.sources(VIEWS[view].sections, VIEWS[view].function) if VIEWS[view].sections else []


@dataclass(frozen=True)
class Exhibit:
    """A view that has been answered: its panels are the data; a notebook shows it as it stands on the page."""

    view: str
    title: str
    panels: list[Panel]

    def __str__(self) -> str:
        return as_text([Prose(self.title), *self.panels])

    def json(self) -> bytes:
        """All numbers, in full."""
        return as_json(self.view, self.title, self.panels)

    def html(self) -> bytes:
        """A page that needs nothing else, with equations and functions at its end."""
        return drawing.page(self.title, [*self.panels, *sources(self.view)])

    def png(self) -> bytes:
        """Its pictures."""
        return panels_png(self.panels, self.title)

    def _repr_html_(self) -> str:
        shown = drawing.fragment([*self.panels, *sources(self.view)])
        return f"<style>{drawing.style()}</style>{shown}<script>{drawing.script()}</script>"


def explore(translator: Translator, text: str, view: str, **asked: Any) -> Exhibit:
    """Answer a view of a text of one sentence; further settings are those of Question."""
    question = Question(translator, text, **asked)
    found = answer(view, question)
    about = said_of(question)
    return Exhibit(view, f"{VIEWS[view].title}: {about}" if about else VIEWS[view].title, found)


def said_of(asked: Question) -> str:
    """The sentence and its translation, for a view that has looked at them; others do not translate."""
    scene = vars(asked).get("scene")
    if scene is None:
        return ""
    edited = " (before any word was forced or forbidden)" if asked.force or asked.forbid else ""
    return f"{scene.sentence.source} → {scene.sentence.text}{edited}"


def answer(view: str, asked: Question) -> list[Panel]:
    """The panels of a view by its name."""
    if view not in VIEWS:
        raise UserError(f"view {view!r} is not one of {', '.join((*KINDS, *VIEWS))}")
    return VIEWS[view].answer(asked)
