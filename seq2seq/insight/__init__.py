"""What the model did, laid open: traces, figures, reports, and the views of the explorer.

from seq2seq import Translator
from seq2seq.insight import explore

explore(Translator.from_pretrained(), "The bank was crowded near the river.", "steps", word="bank")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.insight.gallery import explore

__all__ = ["explore"]


def __getattr__(name: str) -> Any:
    """Import the views, and torch with them, only when they are asked for."""
    if name == "explore":
        from seq2seq.insight import gallery

        return gallery.explore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
