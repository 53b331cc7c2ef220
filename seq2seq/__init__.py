"""A small encoder-decoder Transformer for translation that you can see into."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2seq.translation.result import Translation
    from seq2seq.translation.translator import Translator

__version__ = "0.1.0"
__all__ = ["Translation", "Translator", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the translator, and torch with it, only when it is asked for."""
    if name in ("Translation", "Translator"):
        from seq2seq.translation import translator

        return getattr(translator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
