"""The demo with the bundled model: `python demo/app.py`, or a Space. The environment may set host and port."""

import os

from seq2seq import Translator
from seq2seq.demo import launch

if __name__ == "__main__":
    launch(
        Translator.from_pretrained(),
        host=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
        port=int(os.environ.get("GRADIO_SERVER_PORT", "7860")),
    )
