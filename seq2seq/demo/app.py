"""The page around the tabs, and the server that shows it.

Nothing leaves the machine: system fonts, no telemetry, no shared link, no script from elsewhere.
"""

import string
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
from fastapi import FastAPI

from seq2seq.demo import explorer_tab, translate_tab
from seq2seq.demo.wording import MAX_CHARACTERS, language
from seq2seq.errors import UserError
from seq2seq.insight import drawing
from seq2seq.translation.translator import Translator

FONT = ["system-ui", "sans-serif"]
MONO = ["ui-monospace", "monospace"]
SESSIONS = 200  # visitors whose last translation, with all its attention, is kept in memory
FILES_KEPT = (600, 3600)  # every ten minutes, saved files older than an hour are deleted


def page_head() -> str:
    """Style and script of the page, in its head: Gradio's own `css` argument drops rules that it does not know."""
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return f"<style>{drawing.style()}{style}</style><script>{drawing.script()}</script>"


def theme() -> gr.themes.Base:
    """Colours and fonts of the page; fonts are the system's."""
    return gr.themes.Default(primary_hue="blue", neutral_hue="slate", font=FONT, font_mono=MONO)


def build_demo(translator: Translator) -> gr.Blocks:
    """The page; `launch` gives it its style."""
    source, target = language(translator.info.source), language(translator.info.target)
    demo = gr.Blocks(title=f"{source} to {target}", analytics_enabled=False, delete_cache=FILES_KEPT)
    with demo:
        gr.Markdown(
            f"# {source} → {target}\nA small Transformer, and the cross-attention of the very translation that you see."
        )
        with gr.Tab("Translate"):
            typed = translate_tab.build(translator)
        with gr.Tab("Explore") as explorer:
            *boxes, follow = explorer_tab.build(translator)
        taken = gr.State("")  # what was translated when the explorer was last opened
        follow(
            explorer.select(partial(take_along, translator), [typed, taken], [*boxes, taken], api_visibility="private")
        )
    demo.queue(default_concurrency_limit=8, max_size=100)
    return demo


def take_along(translator: Translator, typed: str, taken: str) -> tuple[Any, ...]:
    """A sentence that was typed to be translated goes along to the explorer, once, with its longest word."""
    sentences = translator.plan(typed[:MAX_CHARACTERS]).sentences
    if typed == taken or len(sentences) != 1:
        return gr.skip(), gr.skip(), gr.skip(), typed
    words = [word.strip(string.punctuation) for word in typed.split()]
    return typed, max(words, key=len), "", typed


def mount(app: FastAPI, translator: Translator) -> Callable[[], None]:
    """Add the page to an application, at /; returns what ends its sessions, which would hold up a server's end."""
    demo = build_demo(translator)
    demo.state_session_capacity = SESSIONS
    page = {"theme": theme(), "head": page_head(), "ssr_mode": False, "mcp_server": False, "enable_monitoring": False}
    gr.mount_gradio_app(app, demo, path="/", footer_links=[], run_history=False, **page)
    gradios: Any = app.routes[-1]
    end: Callable[[], None] = gradios.app.stop_event.set
    return end


def launch(translator: Translator, host: str = "127.0.0.1", port: int = 7860, *, block: bool = True) -> gr.Blocks:
    """Serve the page until Ctrl+C; with block=False return at once (`close()` ends it)."""
    demo = build_demo(translator)
    try:
        _, url, _ = demo.launch(
            server_name=host,
            server_port=port,
            prevent_thread_lock=True,
            quiet=True,
            share=False,
            ssr_mode=False,
            mcp_server=False,
            enable_monitoring=False,
            run_history=False,
            footer_links=[],
            state_session_capacity=SESSIONS,
            theme=theme(),
            head=page_head(),
        )
    except OSError:
        raise UserError(f"port {port} on {host} cannot be used: it is taken or not allowed; choose another") from None
    print(f"The demo is at {url} (Ctrl+C ends it)", file=sys.stderr)
    if block:
        demo.block_thread()
    return demo
