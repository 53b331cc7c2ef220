"""The explorer: every step of attention on a visitor's sentence, with the numbers of the model that translates it.

A sentence is translated and laid open once; whatever view, layer, head or word is chosen, its numbers are read from
that. Only decoding and the second sentence of a pair run the model again.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from html import escape
from typing import Any

import gradio as gr

from seq2seq.demo.wording import check_length, language
from seq2seq.errors import UserError
from seq2seq.insight.contexts import PAIRS
from seq2seq.insight.decoding import WIDEST
from seq2seq.insight.drawing import fragment
from seq2seq.insight.gallery import VIEWS, Question, answer, said_of, sources
from seq2seq.insight.panels import Prose
from seq2seq.insight.scene import KINDS, Kind, Scene, stage
from seq2seq.translation.translator import Translator

SENTENCE = "The bank was crowded near the river."
MEAN = -1  # the choice "mean over heads"; Gradio takes None for no choice
OF_NO_SENTENCE = ("example", "recipe")
MEAN_IN = ("sides",)  # views that can show the mean over heads
Kept = tuple[str, Scene]  # what was typed, and what became of it
IDLE = 3600  # seconds after which a visitor's sentence is dropped: all of its numbers are some megabytes
EMPTY = '<p class="empty-map">Press “Look inside” to see the model at work on this sentence.</p>'


@dataclass(frozen=True)
class Asked:
    """What the controls are set to, in their order on the page."""

    view: str
    word: str
    beside: str
    kind: Kind
    layer: int
    head: int
    asking: int
    answering: int
    scaled: bool
    beam_size: int
    until: int
    force: str
    forbid: str


@dataclass(frozen=True)
class Controls:
    """The controls, in the order of Asked."""

    view: gr.Radio
    word: gr.Textbox
    beside: gr.Textbox
    kind: gr.Radio
    layer: gr.Radio
    head: gr.Radio
    asking: gr.Radio
    answering: gr.Radio
    scaled: gr.Checkbox
    beam_size: gr.Slider
    until: gr.Slider
    force: gr.Textbox
    forbid: gr.Textbox

    def listed(self) -> list[Any]:
        """All of them."""
        return [getattr(self, field.name) for field in fields(self)]


def fitted(asked: Asked, scene: Scene) -> Asked:
    """The same with a layer and pieces that this sentence and attention have."""
    kind = shown_kind(asked, scene)
    rows, columns = scene.labels(kind)
    return replace(
        asked,
        layer=min(asked.layer, len(scene.attentions(kind)) - 1),
        head=asked.head if asked.head != MEAN or takes_mean(asked.view) else 0,
        asking=min(asked.asking, len(rows) - 1),
        answering=min(asked.answering, len(columns) - 1),
    )


def takes_mean(view: str) -> bool:
    """Whether the mean over heads may stay chosen: where it is shown, and where no head is."""
    return view in MEAN_IN or "head" not in VIEWS[view].takes


def shown_kind(asked: Asked, scene: Scene) -> Kind:
    """Whose layers are on offer: of all three side by side, those of the higher stack."""
    if asked.view == "sides":
        return "encoder" if len(scene.trace.encoder) > len(scene.trace.decoder) else "decoder"
    return "decoder" if asked.view == "mask" else asked.kind


def question(translator: Translator, text: str, asked: Asked, scene: Scene | None) -> Question:
    """What is asked of the library."""
    contexts = asked.view == "contexts"
    return Question(
        translator,
        text,
        beside=asked.beside.strip(),
        kind=asked.kind,
        layer=asked.layer,
        head=None if asked.head == MEAN else asked.head,
        word=asked.word.strip() if contexts else asked.asking,
        key=asked.answering,
        scaled=asked.scaled,
        beam_size=asked.beam_size if asked.view == "decoding" else None,
        until=asked.until or None,
        force=asked.force.strip() or None,
        forbid=asked.forbid.strip() or None,
        kept=scene,
    )


def opened(translator: Translator, text: str, kept: Kept | None) -> Kept:
    """The sentence laid open; again only if it is another one than is kept."""
    check_length(text)
    if not text.strip():
        raise UserError("Type a sentence first.")
    return kept if kept is not None and kept[0] == text else (text, stage(translator, text))


def shown_panels(translator: Translator, text: str, asked: Asked, scene: Scene) -> str:
    """What a view shows, and where it is computed."""
    asks = question(translator, text, asked, scene)
    found = answer(asked.view, asks)
    about = [] if asked.view in OF_NO_SENTENCE else [Prose(said_of(asks))]
    return fragment([*about, *found, *sources(asked.view)])


def build(translator: Translator) -> tuple[gr.Textbox, gr.Textbox, gr.Textbox, Callable[[Any], None]]:
    """Lay the tab out and wire it up, inside a Blocks context.

    Returns the boxes of sentence, word and second sentence, and what lets an event be followed by a look.
    """
    kept = gr.State(None, time_to_live=IDLE)
    gr.Markdown(
        "Every number below is read from the model that translates your sentence, one step of attention after another."
    )
    with gr.Row(equal_height=False):
        text = gr.Textbox(
            SENTENCE if _english(translator) else "",
            label=f"One sentence, {language(translator.info.source)}",
            lines=1,
            max_lines=3,
            scale=4,
            min_width=280,
            elem_id="looked-into",
            html_attributes=gr.InputHTMLAttributes(lang=translator.info.source, enterkeyhint="go"),
        )
        button = gr.Button("Look inside", variant="primary", scale=1, min_width=140)
    pair = gr.Radio(list(PAIRS), label="A word in two sentences", elem_id="pair", visible=_english(translator))
    controls = _controls(translator)
    shown = gr.HTML(EMPTY, apply_default_css=False, js_on_load=None, elem_classes="flush", elem_id="view")

    run = {
        "fn": _look_event(translator),
        "inputs": [text, kept, *controls.listed()],
        "outputs": [kept, shown, pair, *controls.listed()],
        "concurrency_limit": 2,
        "concurrency_id": "translate",
        "api_visibility": "private",
    }
    gr.on([button.click, text.submit], **run, show_progress_on=shown)
    typed = [control.submit if isinstance(control, gr.Textbox) else control.input for control in controls.listed()]
    gr.on(typed, **run, show_progress="hidden", trigger_mode="always_last")
    filled = pair.input(_fill, pair, [controls.word, text, controls.beside], api_visibility="private")

    def follow(event: Any) -> None:
        event.then(**run, show_progress_on=shown)

    follow(filled)
    return text, controls.word, controls.beside, follow


def _english(translator: Translator) -> bool:
    """Whether the model reads the language of the examples."""
    return translator.info.source == "en"


def _fill(word: str) -> tuple[str, str, str]:
    """A word and its two sentences."""
    return word, *PAIRS[word]


def _controls(translator: Translator) -> Controls:
    """All controls; which of them are seen depends on the view."""
    config, decode = translator.info.model, translator.info.decode
    first, second = (word := next(iter(PAIRS)), PAIRS[word][0]) if _english(translator) else ("", "")
    latest = int(decode.max_length_ratio * decode.max_source_tokens) + 10
    views = [(f"{number}. {view.title}", name) for number, (name, view) in enumerate(VIEWS.items(), start=1)]
    kinds: list[tuple[str, Kind]] = [(kind, kind) for kind in KINDS]
    layers, heads = _numbers(config.encoder_layers), _numbers(config.heads, mean=True)
    beam, piece = min(decode.beam_size, WIDEST), [("1", 1)]
    view = gr.Radio(views, value=next(iter(VIEWS)), label="What to look at", elem_id="view-choice")
    with gr.Row(elem_id="controls"):
        return Controls(
            view,
            word=gr.Textbox(first, label="Word", min_width=120, scale=1, elem_id="word"),
            beside=gr.Textbox(
                second, label="Second sentence (none: the word alone)", min_width=240, scale=4, elem_id="beside"
            ),
            kind=_hidden(gr.Radio, kinds, value="encoder", label="Attention", min_width=260, elem_id="kind"),
            layer=_hidden(gr.Radio, layers, label="Layer", value=config.encoder_layers // 2, elem_id="explored-layer"),
            head=_hidden(gr.Radio, heads, label="Head", value=MEAN, elem_id="explored-head"),
            asking=_hidden(gr.Radio, piece, value=1, label="Who asks", min_width=320, scale=3, elem_id="asking"),
            answering=_hidden(
                gr.Radio, piece, value=1, label="Who answers", min_width=320, scale=3, elem_id="answering"
            ),
            scaled=_hidden(gr.Checkbox, True, label="divide by sqrt(d_head)", min_width=180, elem_id="scaled"),
            beam_size=_hidden(gr.Slider, 1, WIDEST, beam, step=1, label="Beam size", elem_id="beam"),
            until=_hidden(gr.Slider, 0, latest, 0, step=1, label="Steps shown, 0: all", elem_id="until"),
            force=_hidden(gr.Textbox, "", label="Force step=word, …", placeholder="1=rive", elem_id="force"),
            forbid=_hidden(gr.Textbox, "", label="Forbid step=word, …", placeholder="0=La", elem_id="forbid"),
        )


def _hidden(kind: Callable[..., Any], *values: Any, **settings: Any) -> Any:
    """A control that the first view does not take."""
    return kind(*values, **{"min_width": 120, "visible": False} | settings)


def _numbers(count: int, mean: bool = False) -> list[tuple[str, int]]:
    return [("mean", MEAN)] * mean + [(str(number), number) for number in range(count)]


def visible(name: str, view: str) -> bool:
    """Whether a view takes a control."""
    return name == "view" or name in VIEWS[view].takes


def updates(asked: Asked, found: Asked, scene: Scene | None) -> list[Any]:
    """The controls after a look: which are seen, and what they offer.

    A value is set only where another was found: what a visitor has chosen since then is not undone.
    """
    offers = {} if scene is None else offered(found, scene)
    changes = []
    for name in (field.name for field in fields(Asked)):
        change: dict[str, Any] = {"visible": visible(name, found.view)}
        if name in offers:
            change["choices"] = offers[name]
        if getattr(found, name) != getattr(asked, name):
            change["value"] = getattr(found, name)
        changes.append(gr.update(**change))
    return changes


def offered(asked: Asked, scene: Scene) -> dict[str, list[tuple[str, int]]]:
    """What the controls that depend on the sentence and the attention offer."""
    kind = shown_kind(asked, scene)
    rows, columns = scene.labels(kind)
    return {
        "layer": _numbers(len(scene.attentions(kind))),
        # The mean is always on offer: a click that comes before the page has its new choices still sends it.
        "head": _numbers(scene.model.config.heads, mean=True),
        "asking": _told_apart(rows),
        "answering": _told_apart(columns),
    }


def _told_apart(labels: list[str]) -> list[tuple[str, int]]:
    """Pieces by number; those that come more than once have it in their label."""
    return [(f"{label} ({n})" if labels.count(label) > 1 else label, n) for n, label in enumerate(labels)]


def _look_event(translator: Translator) -> Callable[..., Any]:
    def event(text: str, kept: Kept | None, *values: Any) -> Any:
        asked = found = Asked(*values)
        try:
            kept = opened(translator, text, kept)
            found = fitted(asked, kept[1])
            shown = shown_panels(translator, text, found, kept[1])
        except UserError as error:
            shown = f'<p class="empty-map" role="alert">{escape(str(error))}</p>'
        pair = gr.update(visible=asked.view == "contexts" and _english(translator))
        return kept, shown, pair, *updates(asked, found, None if kept is None else kept[1])

    return event
