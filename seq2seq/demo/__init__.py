"""The Gradio demo: one page over a Translator, a file a tab. Nothing starts at import."""

from seq2seq.demo.app import build_demo, launch, mount

__all__ = ["build_demo", "launch", "mount"]
