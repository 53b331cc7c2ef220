"""The views of the explorer by name, for the command line, the page and Python alike."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from seq2seq.errors import UserError
from seq2seq.insight import contexts, cost, decoding, drawing, example, geometry, heads, masking, recipe, sides, steps
from seq2seq.insight.panels import Panel, as_text
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
    step: int = 0  # at which a word is forced or forbidden
    force: str | None = None
    forbid: str | None = None
    kept: Scene | None = field(default=None, repr=False)  # of this very text, so that it is not translated again

    @cached_property
    def scene(self) -> Scene:
        """The text's translation, laid open."""
        return self.kept or stage(self.translator, self.text, self.beam_size)

    def layer_of(self, kind: Kind) -> int:
        """The layer asked for, or the middle one."""
        return len(self.scene.attentions(kind)) // 2 if self.layer is None else self.layer


@dataclass(frozen=True)
class View:
    """One view: what it is called on the page, which of the page's controls it takes, and how it answers."""

    title: str
    takes: set[str]
    sections: tuple[str, ...]  # of docs/attention.md
    answer: Callable[[Question], list[Panel]]


def _contexts(asked: Question) -> list[Panel]:
    word = "bank" if asked.word is None else str(asked.word)
    if asked.beside is None and word not in contexts.PAIRS:
        raise UserError(f"a second sentence with {word!r} is needed: --beside")
    beside = asked.beside or next(text for text in contexts.PAIRS[word] if text != asked.text)
    return contexts.panels(contexts.contexts(asked.scene, stage(asked.translator, beside, asked.beam_size), word))


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
    tokenizer = asked.translator.tokenizer
    if asked.force is not None and asked.forbid is not None:
        raise UserError("force a word or forbid one, not both at once")
    edits = decoding.Edits()
    if asked.force is not None:
        edits = decoding.force_word(tokenizer, asked.force, asked.step)
    elif asked.forbid is not None:
        edits = decoding.forbid_word(tokenizer, asked.forbid, asked.step)
    beam_size = asked.beam_size or min(asked.translator.info.decode.beam_size, decoding.WIDEST)
    return decoding.panels(decoding.decoding(asked.translator, asked.text, beam_size, edits), asked.until)


VIEWS: dict[str, View] = {
    "contexts": View(
        "Static against contextual", {"beside", "word"}, ("Embedding and position", "Residual"), _contexts
    ),
    "geometry": View(
        "Geometry", {"kind", "layer", "head", "asking"}, ("Query, key, value", "Scores and weights"), _geometry
    ),
    "steps": View(
        "q, k, v step by step",
        {"kind", "layer", "head", "asking", "answering", "scaled"},
        ("Query, key, value", "Scores and weights", "Masks", "Heads", "Residual"),
        _steps,
    ),
    "example": View(
        "The chapter's worked example",
        set(),
        ("Query, key, value", "Scores and weights"),
        lambda asked: example.panels(example.example()),
    ),
    "sides": View(
        "Self- and cross-attention",
        {"layer", "head"},
        ("Query, key, value", "Residual"),
        lambda asked: sides.panels(asked.scene, asked.layer_of("cross"), asked.head),
    ),
    "mask": View("Causal mask", {"layer", "head"}, ("Masks",), _masking),
    "heads": View("Heads", set(), ("Heads",), _heads),
    "decoding": View("Decoding", {"beam_size", "until", "step", "force", "forbid"}, ("Search", "Cache"), _decoding),
    "cost": View("Cost", set(), ("Cache", "Scores and weights"), lambda asked: cost.panels(cost.cost(asked.scene))),
    "recipe": View("Numeric recipe and sources", set(), (), lambda asked: recipe.panels()),
}


def sources(view: str) -> list[Panel]:
    """Equations and functions behind a view, for the end of its page."""
    return recipe.sources(VIEWS[view].sections) if VIEWS[view].sections else []


@dataclass(frozen=True)
class Exhibit:
    """A view that has been answered: its panels are the data; a notebook shows it as it stands on the page."""

    name: str
    panels: list[Panel]

    def __str__(self) -> str:
        return as_text(self.panels)

    def _repr_html_(self) -> str:
        shown = drawing.fragment([*self.panels, *sources(self.name)])
        return f"<style>{drawing.style()}</style>{shown}<script>{drawing.script()}</script>"


def explore(translator: Translator, text: str, view: str, **asked: Any) -> Exhibit:
    """Answer a view of a text of one sentence; further settings are those of Question."""
    return Exhibit(view, answer(view, Question(translator, text, **asked)))


def answer(name: str, asked: Question) -> list[Panel]:
    """The panels of a view by its name."""
    if name not in VIEWS:
        raise UserError(f"view {name!r} is not one of {', '.join((*KINDS, *VIEWS))}")
    return VIEWS[name].answer(asked)
