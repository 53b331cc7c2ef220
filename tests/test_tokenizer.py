import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq.config import TokenizerConfig
from seq2seq.data import tokenizer as module
from seq2seq.data.corpus import SAMPLE
from seq2seq.data.tokenizer import UNK, Tokenizer, thin_out
from seq2seq.errors import UserError

CONFIG = TokenizerConfig(vocab_size=600)
SENTENCES = [f"Room {number}" for number in range(100)]
SENTENCES += SAMPLE.read_text(encoding="utf-8").replace("\t", "\n").split("\n")[:1500]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(SENTENCES, CONFIG)


@pytest.mark.parametrize(
    "text",
    [
        "Who left the door open this morning?",
        "Qu’est-ce que c’est\u202f? «\u00a0Rien\u00a0»\u2009!",
        "WHERE are yOU",
        "I 😀 you 👩🏽‍🚀 🎉",
        "日本語 עברית हिन्दी e\u0301",
        "1234567890 €18.10",
        "a\tb\nc\u2028d\u0085e",
        "NUL \x00 inside, U+FFFD \ufffd",
        "</s> <s> <pad> <unk> <0x41>",
    ],
)
def test_a_text_comes_back_as_it_was(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(st.text(alphabet=st.sampled_from("aeÉœ’'.?!7 \u00a0\u202f\u00ad\n😀\u200dß中"), max_size=30))
def test_any_text_comes_back_but_for_runs_of_spaces(tokenizer, text):
    """SentencePiece makes one space of a run of U+0020 and drops those at both ends; nothing else changes."""
    assert tokenizer.decode(tokenizer.encode(text)) == re.sub(" +", " ", text).strip(" ")


@given(st.text(max_size=20).filter(lambda text: "\u2581" not in text))
def test_nothing_is_unknown_and_no_special_id_comes_from_text(tokenizer, text):
    assert min(tokenizer.encode(text), default=4) > UNK
    assert not {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id} & set(tokenizer.encode(text))


def test_special_ids_have_their_places_and_leave_no_text(tokenizer):
    assert tokenizer.pieces([0, 1, 2, 3]) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 2, 3)
    ids = tokenizer.encode("good night")
    assert tokenizer.decode([2, *ids, 3, 0, 0]) == "good night"


def test_written_special_signs_are_text(tokenizer):
    assert min(tokenizer.encode("<s> </s> <pad>")) > tokenizer.eos_id


def test_digits_stand_alone_and_case_is_kept(tokenizer):
    pieces = tokenizer.pieces(tokenizer.encode("Room 2024"))
    assert [piece for piece in pieces if piece.strip("▁").isdigit()] == ["2", "0", "2", "4"]
    assert tokenizer.encode("Paris") != tokenizer.encode("paris")


def test_many_texts_encode_as_each_alone(tokenizer):
    texts = ["one two", "", "😀", "three"]
    assert tokenizer.encode_all(texts) == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_all([]) == []


def test_sampled_pieces_are_of_the_same_text_and_the_seed_decides(tokenizer):
    texts = ["The winter was longer than usual.", "Qui a laissé la porte ouverte ce matin ?"] * 20
    drawn = tokenizer.sample_all(texts, Random(3))
    assert [tokenizer.decode(ids) for ids in drawn] == texts
    assert len({tuple(ids) for ids in drawn}) > 10
    assert tokenizer.sample_all(texts, Random(3)) == drawn
    assert tokenizer.sample_all(texts, Random(4)) != drawn
    longer = sum(map(len, drawn)) / sum(map(len, tokenizer.encode_all(texts)))
    assert 1.0 < longer < 1.6
    assert tokenizer.sample_all([], Random(3)) == []


def test_sampling_does_not_depend_on_the_process(tokenizer, tmp_path):
    """As the library's own sampling does, which no seed repeats in another process."""
    (tmp_path / "tokenizer.model").write_bytes(tokenizer.model)
    draw = f"""
from random import Random
from seq2seq.data.tokenizer import Tokenizer
print(Tokenizer.load({str(tmp_path / "tokenizer.model")!r}).sample_all(["Who left the door open?"] * 9, Random(3)))"""
    drawn = [subprocess.run([sys.executable, "-c", draw], capture_output=True, check=True).stdout for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_probable_cuts_are_drawn_more_often(tokenizer):
    text = "Who left the door open this morning?"
    drawn = [tuple(ids) for ids in tokenizer.sample_all([text] * 600, Random(0))]
    best = tuple(tokenizer.encode(text))
    assert drawn.count(best) == max(map(drawn.count, set(drawn)))
    assert drawn.count(best) < 500


def test_bytes_that_are_no_character_become_the_replacement_sign(tokenizer):
    first, *_ = [index for index in tokenizer.encode("😀") if tokenizer.pieces([index])[0].startswith("<0x")]
    assert tokenizer.decode([first]) == "\ufffd"


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_training_twice_gives_equal_bytes(kind):
    config = TokenizerConfig(vocab_size=500, kind=kind)
    first, second = (Tokenizer.train(SENTENCES[:400], config) for _ in range(2))
    assert first.model == second.model
    assert len(first) == 500


def test_a_saved_tokenizer_loads_as_it_was(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.model"
    path.write_bytes(tokenizer.model)
    assert Tokenizer.load(path).encode("Good night!") == tokenizer.encode("Good night!")


def test_a_vocabulary_that_the_text_cannot_fill_is_refused_in_one_line():
    with pytest.raises(UserError, match=r"^tokenizer\.vocab_size = 50000: Vocabulary size too high.*<= \d+") as caught:
        Tokenizer.train(SENTENCES[:50], TokenizerConfig(vocab_size=50_000))
    assert "\n" not in str(caught.value)


def test_a_vocabulary_smaller_than_the_alphabet_is_refused_in_one_line():
    alphabet = [chr(code) for code in range(0x4E00, 0x4E00 + 400)]
    with pytest.raises(UserError, match=r"^tokenizer\.vocab_size = 300: Vocabulary size.*smaller") as caught:
        Tokenizer.train(alphabet, TokenizerConfig(vocab_size=300, character_coverage=1.0))
    assert "\n" not in str(caught.value)


def test_no_text_to_learn_from_is_refused():
    with pytest.raises(UserError, match=r"^tokenizer\.vocab_size = 600: "):
        Tokenizer.train([], CONFIG)


@pytest.mark.parametrize("inside", ["\n", "\0", "\t", "\r", "\x85", "\ud800", "\ufeff", "\u2581"])
def test_no_character_inside_a_sentence_stops_the_training(inside):
    odd = [f"left{inside}right {number}" for number in range(20)] + [inside, ""]
    learned = Tokenizer.train(SENTENCES[:400] + odd, TokenizerConfig(vocab_size=500))
    assert len(learned) == 500
    assert learned.encode(odd[3]) == learned.encode_all(odd[3:4])[0]


def test_up_to_a_number_of_sentences_all_are_learned_from(monkeypatch):
    few = Tokenizer.train(SENTENCES[:400], TokenizerConfig(vocab_size=500)).model
    monkeypatch.setattr(module, "MOST_SENTENCES", 400)
    assert Tokenizer.train(iter(SENTENCES[:400]), TokenizerConfig(vocab_size=500)).model == few
    monkeypatch.setattr(module, "MOST_SENTENCES", 399)
    assert Tokenizer.train(iter(SENTENCES[:400]), TokenizerConfig(vocab_size=500)).model != few


@pytest.mark.parametrize("count", [0, 1, 10, 11, 30, 31, 1000])
def test_of_more_sentences_some_are_taken_evenly_and_of_both_languages(count):
    sentences = [f"{'en' if number % 2 == 0 else 'fr'} {number}" for number in range(count)]
    chosen = list(thin_out(iter(sentences), 10))
    step = next(3**power for power in range(9) if len(range(0, count, 3**power)) <= 10)
    assert chosen == sentences[::step]
    assert count < 10 or {sentence[:2] for sentence in chosen} == {"en", "fr"}


@pytest.mark.parametrize("share", [0, 0.5, 0.99])
def test_a_damaged_model_is_refused(tokenizer, tmp_path: Path, share):
    path = tmp_path / "tokenizer.model"
    path.write_bytes(tokenizer.model[: int(len(tokenizer.model) * share)])
    with pytest.raises(UserError, match=r"tokenizer\.model is not a SentencePiece model"):
        Tokenizer.load(path)


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(UserError, match="the tokenizer is not a SentencePiece model"):
        Tokenizer(b"<html>404</html>")
    with pytest.raises(UserError, match=r"none\.model is missing or cannot be read"):
        Tokenizer.load(tmp_path / "none.model")
