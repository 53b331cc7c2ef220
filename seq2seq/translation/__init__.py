"""From text to translation: search, alignment, sentences, and the Translator that joins them."""
