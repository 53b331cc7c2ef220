"""Text in, translation out, and beside it the cross-attention between the two.

The translation is kept per visitor with the attention of all layers and heads, so that looking at another one never
runs the model again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.processing_utils import save_bytes_to_cache

from seq2seq.demo.sureness import sureness
from seq2seq.demo.wording import (
    ABOUT_END,
    HOW_TO_READ,
    alternatives_table,
    check_length,
    describe_choice,
    language,
    notice,
    sentence_choices,
)
from seq2seq.errors import UserError
from seq2seq.folder import ModelInfo
from seq2seq.insight.heatmap import HeatMap, cross_attention, heatmap_fragment
from seq2seq.insight.views import View, as_html, as_json, as_png
from seq2seq.translation.result import SentenceTranslation, Translation
from seq2seq.translation.translator import Translator

MEAN = -1  # the choice "mean over heads"; Gradio takes None for no choice
WORDS, PIECES = "words", "pieces"
EMPTY_MAP = '<p class="empty-map">The attention of the translation appears here.</p>'
EXAMPLES = [
    "The bank was crowded near the river.",
    "The old man is reading a book.",
    "I would have called you if I had known your number.",
    "She doesn't like the black cat. The cat likes her.",
    "Where did you buy those red shoes?",
]
SAVED = (
    ("Save picture (PNG)", "png", as_png),
    ("Save numbers (JSON)", "json", as_json),
    ("Save page (HTML)", "html", as_html),
)


@dataclass(frozen=True)
class Choice:
    """What the controls of the map are set to, in their order on the page."""

    sentence: int
    layer: int
    head: int
    unit: str
    end: bool

    @property
    def head_or_mean(self) -> int | None:
        """The head as the library counts it: None is the mean."""
        return None if self.head == MEAN else self.head


def first_choice(info: ModelInfo) -> Choice:
    """Where the page starts: the layer and head that align best, else the mean of the middle layer."""
    best = info.aligning
    return Choice(0, best.layer, MEAN if best.head is None else best.head, WORDS, end=False)


def translate_text(translator: Translator, text: str, beam_size: int, n_best: int) -> Translation:
    """Translate what a visitor typed."""
    check_length(text)
    sure = translator.why_unsure is None
    return translator.translate(text, beam_size=beam_size, n_best=n_best, confidence=sure)


def chosen_sentence(result: Translation | None, index: int) -> SentenceTranslation | None:
    """The sentence whose map is shown; None before the first translation and where nothing was translated."""
    if result is None or not result.sentences:
        return None
    # The list of sentences on the page may still be that of the text before.
    return result.sentences[index if index < len(result.sentences) else 0]


def shown_view(sentence: SentenceTranslation, choice: Choice) -> View:
    """The map that the controls ask for."""
    layer, head = choice.layer, choice.head_or_mean
    weights, rows, columns = cross_attention(sentence, layer, head, pieces=choice.unit == PIECES, end=choice.end)
    return View("cross", layer, head, sentence.source, sentence.text, weights, rows, columns)


def map_html(info: ModelInfo, view: View) -> str:
    """The map as it stands on the page."""
    caption = f"{view.title}: {language(info.source)} across, {language(info.target)} down"
    return heatmap_fragment(HeatMap(view.weights, view.rows, view.columns, caption))


def file_name(view: View, ending: str) -> str:
    """Name of a saved map."""
    head = "mean" if view.head is None else f"head{view.head}"
    return f"attention-layer{view.layer}-{head}.{ending}"


def build(translator: Translator) -> gr.Textbox:
    """Lay the tab out and wire it up, inside a Blocks context; returns the box of the text."""
    result = gr.State(None)
    # Outside the panel: a panel that is shown again would show its hidden parts too.
    download = gr.DownloadButton(visible="hidden", elem_id="download")
    with gr.Row(equal_height=False):
        with gr.Column(scale=2, min_width=320):
            text, button, beam_size, n_best = _input(translator.info)
            output, note, sure, alternatives = _output(translator.info)
        with gr.Column(scale=3, min_width=320):
            empty = _html(EMPTY_MAP)
            with gr.Column(visible=False) as panel:
                controls, picture, shown = _map(translator.info)
                _save_buttons([result, *controls], download)
    examples = gr.Examples(EXAMPLES, inputs=text)
    with gr.Accordion("How to read this", open=False):
        gr.Markdown(HOW_TO_READ)

    run = {
        "fn": _translate_event(translator),
        "inputs": [text, beam_size, n_best],
        "outputs": [result, output, note, sure, controls[0]],
        "show_progress_on": output,
        "concurrency_limit": 2,  # the model uses all cores: more at once would only slow each other down
        "concurrency_id": "translate",
        "api_visibility": "private",
    }
    show = {
        "fn": _show_event(translator.info),
        "inputs": [result, *controls],
        "outputs": [empty, panel, picture, shown, alternatives],
        "show_progress": "hidden",
        "api_visibility": "private",
    }
    for started in (gr.on([button.click, text.submit], **run), examples.load_input_event.then(**run)):
        started.then(**show)
    gr.on([control.input for control in controls], **show, trigger_mode="always_last")
    return text


def _input(info: ModelInfo) -> tuple[gr.Textbox, gr.Button, gr.Slider, gr.Slider]:
    """Text, button and the settings of the search."""
    text = gr.Textbox(
        label=language(info.source),
        placeholder="Type or paste text, then press Enter (Shift+Enter for a new line)",
        lines=1,  # with one line Enter submits; the style sheet gives it the height of three
        max_lines=12,
        elem_id="source",
        html_attributes=gr.InputHTMLAttributes(lang=info.source, enterkeyhint="go"),
    )
    button = gr.Button("Translate", variant="primary")
    with gr.Accordion("Search settings", open=False):
        default = info.decode.beam_size
        beam_size = gr.Slider(
            1, max(10, default), default, step=1, label="Beam size", info="Hypotheses kept at each step; 1 is greedy"
        )
        n_best = gr.Slider(
            1,
            5,
            1,
            step=1,
            label="Alternatives",
            info="Best translations listed for each sentence, at most the beam size",
        )
    return text, button, beam_size, n_best


def _output(info: ModelInfo) -> tuple[gr.Textbox, gr.Markdown, gr.HTML, gr.HTML]:
    """Translation, what there is to say about it, how sure to be of it, and the alternatives."""
    output = gr.Textbox(
        label=language(info.target),
        lines=3,
        max_lines=20,
        interactive=False,
        buttons=["copy"],
        elem_id="translation",
        html_attributes=gr.InputHTMLAttributes(lang=info.target),
    )
    note = gr.Markdown(visible=False, elem_id="note")
    return output, note, _html(), _html()


def _map(info: ModelInfo) -> tuple[list[Any], gr.HTML, gr.Markdown]:
    """The controls of the map in the order of Choice, the map, and the line that says what is shown."""
    first = first_choice(info)
    sentence = gr.Dropdown([], label="Sentence", filterable=False, visible=False, elem_id="sentence")
    with gr.Row():
        layers = [(str(layer), layer) for layer in range(info.model.decoder_layers)]
        heads = [("mean", MEAN), *((str(head), head) for head in range(info.model.heads))]
        layer = gr.Radio(layers, value=first.layer, label="Layer", min_width=120, scale=2, elem_id="layer")
        head = gr.Radio(heads, value=first.head, label="Head", min_width=120, scale=3, elem_id="head")
        unit = gr.Radio([WORDS, PIECES], value=WORDS, label="Between", min_width=120, scale=2, elem_id="unit")
        end = gr.Checkbox(label="show </s>", min_width=120, scale=1)
    picture = _html()
    shown = gr.Markdown(elem_id="shown")
    return [sentence, layer, head, unit, end], picture, shown


def _html(value: str = "") -> gr.HTML:
    """HTML that brings a style of its own; while it is empty it takes no room (see the style sheet)."""
    return gr.HTML(value, apply_default_css=False, js_on_load=None, elem_classes="flush")


def _save_buttons(inputs: Sequence[Any], download: gr.DownloadButton) -> None:
    """Buttons that draw the map only when it is asked for, and then press the hidden button that holds the file."""
    with gr.Row():
        for label, ending, render in SAVED:
            save = _save_event(render, ending, download.GRADIO_CACHE)
            saved = gr.Button(label, size="sm", min_width=100).click(save, inputs, download, api_visibility="private")
            saved.success(fn=None, js="() => document.getElementById('download').click()")


def _translate_event(translator: Translator) -> Callable[[str, int, int], Any]:
    def translate(text: str, beam_size: int, n_best: int) -> Any:
        try:
            result = translate_text(translator, text, beam_size, n_best)
        except UserError as error:
            gr.Warning(str(error))
            return gr.skip()
        said, sentences = notice(result), sentence_choices(result)
        listed = gr.Dropdown(sentences, value=0 if sentences else None, visible=len(sentences) > 1)
        sure = sureness(translator.info, result)
        return result, result.text, gr.Markdown(said, visible=bool(said)), sure, listed

    return translate


def _show_event(info: ModelInfo) -> Callable[..., Any]:
    def show(result: Translation | None, sentence: int | None, *controls: Any) -> Any:
        choice = Choice(sentence or 0, *controls)
        chosen = chosen_sentence(result, choice.sentence)
        if chosen is None:
            return gr.HTML(visible=True), gr.Column(visible=False), "", "", ""
        said = describe_choice(info, choice.layer, choice.head_or_mean)
        if choice.end:
            said += f"\n\n{ABOUT_END}"
        table = alternatives_table(chosen, info.decode.length_penalty)
        picture = map_html(info, shown_view(chosen, choice))
        return gr.HTML(visible=False), gr.Column(visible=True), picture, said, table

    return show


def _save_event(render: Callable[[View], bytes], ending: str, folder: str) -> Callable[..., str | None]:
    def save(result: Translation | None, sentence: int | None, *controls: Any) -> str | None:
        choice = Choice(sentence or 0, *controls)
        chosen = chosen_sentence(result, choice.sentence)
        if chosen is None:
            gr.Info("This translation is no longer kept here: press Translate again.")
            return None
        view = shown_view(chosen, choice)
        path: str = save_bytes_to_cache(render(view), file_name(view, ending), folder)
        return path

    return save
