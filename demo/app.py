"""The demo with the bundled model: `python demo/app.py`, or a Space. The environment may set host and port."""

import os
import sys

from seq2seq import Translator
from seq2seq.demo import launch
from seq2seq.errors import UserError, exit_status


def main() -> None:
    """Serve the page until Ctrl+C."""
    port = os.environ.get("GRADIO_SERVER_PORT", "7860")
    if not port.isdecimal():
        raise UserError(f"GRADIO_SERVER_PORT = {port!r} is not a port number")
    launch(Translator.from_pretrained(), os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"), int(port))


if __name__ == "__main__":
    sys.exit(exit_status("demo", main))
