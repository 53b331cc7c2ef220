"""What is left of a translator's quality when people type as they do."""

import pytest

from seq2seq.insight.robustness import TYPINGS, bare, robustness

SOURCES = ["Where is Anna's coat?", "The harbour was empty.", "We leave at nine."]
REFERENCES = [("Où est le manteau d'Anna ?",), ("Le port était vide.", "Le port était désert."), ("On part à neuf.",)]


@pytest.mark.parametrize(
    ("text", "left"),
    [("Où est Anna\u202f?", "où est anna"), ("FIN.", "fin"), ("Oui", "oui"), ("Eh bien...", "eh bien")],
)
def test_bare_text_has_neither_capitals_nor_a_final_mark(text, left):
    assert bare(text) == left


def typed(sources: list[str]) -> list[list[str]]:
    """What a translator gets to see, way by way."""
    seen: list[list[str]] = []

    def translate(texts):
        seen.append(list(texts))
        return ["Le port"] * len(texts)

    robustness(translate, sources, REFERENCES, ["Le port"] * len(sources))
    return seen


def test_the_sentences_are_typed_in_each_way():
    seen = dict(zip(TYPINGS, typed(SOURCES), strict=True))
    assert seen["lower case, no final mark"][0] == "where is anna's coat"
    assert seen["capitals"][0] == "WHERE IS ANNA'S COAT?"
    assert seen["other quotes"] == ["Where is Anna’s coat?", *SOURCES[1:]]
    assert all(slip != text for slip, text in zip(seen["one typing error"], SOURCES, strict=True))
    assert typed(SOURCES) == typed(SOURCES)


def test_a_translator_keeps_all_that_no_typing_takes_from_it():
    answers = dict(zip(SOURCES, (refs[0] for refs in REFERENCES), strict=True))

    def translate(texts):
        """Right if a sentence is known, in whatever case and with or without its mark."""
        known = {bare(source): target.upper() for source, target in answers.items()}
        return [known.get(bare(text), "?") for text in texts]

    kept = {one.typing: one for one in robustness(translate, SOURCES, REFERENCES, translate(SOURCES))}
    assert kept["as written"].bleu == pytest.approx(100.0)
    assert kept["lower case, no final mark"].share == kept["capitals"].share == 1.0
    assert kept["one typing error"].share < 0.5
    assert kept["one typing error"].bleu < 50


def test_a_translator_that_knows_nothing_has_nothing_to_lose():
    nothing = [""] * len(SOURCES)
    assert [one.share for one in robustness(lambda texts: nothing, SOURCES, REFERENCES, nothing)] == [0.0] * 5
