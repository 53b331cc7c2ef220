import copy
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import loaded_model

from seq2seq import Translator
from seq2seq.errors import UserError
from seq2seq.folder import AlignmentChoice
from seq2seq.translation.alignment import links, merge_pieces, word_attention
from seq2seq.translation.engine import Hypothesis

SENTENCE = "The old man is reading a book in the garden."

VARIED = [
    "Who took my umbrella?",
    "We had soup for dinner.",
    "He is taller than his brother.",
    "I can't find my keys anywhere.",
    "Close the window, please.",
    "What a beautiful day!",
    "She has been living in Paris for ten years.",
    "If it rains tomorrow, we will stay at home and play cards.",
    "Do you know how to get to the station?",
    "My uncle bought a new car last week.",
    "Nobody came.",
    "Run!",
    "The children were playing in the street when the storm began.",
    "I would rather drink tea than coffee.",
    "They didn't tell us why the train was late.",
    "How many languages do you speak?",
    "Tom is allergic to cats.",
    "You should have listened to your mother.",
    "It is cold in here.",
    "I've never seen anything like it.",
    "The shop closes at 7:30 in the evening.",
    "This bridge was built in 1932.",
    "Let me know as soon as you have made a decision.",
    "Whose shoes are these?",
    "Her answer surprised everybody.",
    "There is no milk left in the fridge.",
    "Can I ask you a question?",
    "He speaks quietly, but everyone listens.",
    "The doctor told him to give up smoking.",
    "I forgot to water the plants.",
    "Is anybody home?",
    "We're going to need a bigger table.",
    "The film that we saw yesterday was boring.",
    "She sings better than I do.",
    "Don't touch that!",
    "It took me three hours to finish my homework.",
    "The mayor, who is very popular, will give a speech on Monday.",
    "Let's take a walk along the beach before sunset.",
    "Most of the students passed the exam.",
    "I don't know what to say.",
]


class EchoEngine:
    """Gives every source back as its own translation."""

    def search(self, sources: Sequence[Sequence[int]], beam_size: int, alpha: float) -> list[list[Hypothesis]]:
        return [[Hypothesis(tuple(source), 0.0, 0.0, truncated=False)] for source in sources]


@pytest.fixture(scope="module")
def echo(translator: Translator) -> Translator:
    """The translator without its model: what comes out is what reached the model."""
    copied = copy.copy(translator)
    copied.engine = EchoEngine()
    return copied


def echoed(echo: Translator, text: str) -> str:
    return echo.translate(text, attention=False).text


# In and out


def test_a_text_gives_a_translation_and_a_list_gives_a_list(translator):
    one = translator.translate(SENTENCE)
    assert one.source == SENTENCE
    assert one.text
    many = translator.translate([SENTENCE, "Good night."])
    assert [item.source for item in many] == [SENTENCE, "Good night."]
    assert many[0].text == one.text


def test_a_list_keeps_its_order_and_its_duplicates(translator):
    texts = ["Good night.", SENTENCE, "", "Good night.", "42", SENTENCE]
    results = translator.translate(texts, attention=False)
    assert [item.source for item in results] == texts
    assert [item.text for item in results] == [translator.translate(text, attention=False).text for text in texts]
    assert results[0].text == results[3].text != results[1].text


def test_an_empty_list_gives_an_empty_list(translator):
    assert translator.translate([]) == []


def test_any_sequence_of_texts_will_do(translator):
    assert len(translator.translate(("Good night.", "Hello."), attention=False)) == 2


@pytest.mark.parametrize("text", [None, 5, b"Hello.", ["Hello.", None], ["Hello.", ["Hi."]]])
def test_what_is_no_text_is_refused(translator, text):
    with pytest.raises(UserError, match=r"^text .* is a \w+, not a string$"):
        translator.translate(text)


@pytest.mark.parametrize("text", ["", " ", "\n", "-", "...", "42", "😀 🎉", "3.14\r\n\r\n"])
def test_what_has_nothing_to_translate_passes_through(translator, text):
    result = translator.translate(text)
    assert result.text == text
    assert result.sentences == []
    assert result.truncated is False


def test_lines_and_the_space_between_sentences_are_the_sources(translator):
    result = translator.translate("  The cat sleeps.\r\n\r\n\tThe dog runs.  Who is it? 😀\n")
    cat, dog, who = [sentence.text for sentence in result.sentences]
    assert result.text == f"  {cat}\r\n\r\n\t{dog}  {who} 😀\n"


def test_a_sentence_is_the_same_alone_and_in_a_batch(translator):
    batch = translator.translate(VARIED, attention=False)
    for text, together in zip(VARIED, batch, strict=True):
        alone = translator.translate(text, attention=False)
        assert alone.text == together.text
        assert alone.score == pytest.approx(together.score, abs=1e-4)


# Options


def test_n_best_gives_that_many_different_translations_best_first(translator):
    result = translator.translate(SENTENCE, beam_size=5, n_best=4)
    assert len(result.alternatives) == len({item.text for item in result.alternatives}) == 4
    assert [item.score for item in result.alternatives] == sorted((a.score for a in result.alternatives), reverse=True)
    assert (result.alternatives[0].text, result.alternatives[0].score) == (result.text, result.score)
    assert len(translator.translate(SENTENCE).alternatives) == 1


def test_the_length_penalty_rules_the_score(translator):
    flat = translator.translate(SENTENCE, beam_size=1, length_penalty=0)
    mean = translator.translate(SENTENCE, beam_size=1, length_penalty=1)
    assert flat.text == mean.text
    assert flat.score == pytest.approx(mean.score * len(mean.target_tokens))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam_size 0 is not between 1 and 64"),
        ({"beam_size": 65}, "beam_size 65 is not between 1 and 64"),
        ({"beam_size": 2.5}, "beam_size 2.5 is not a whole number"),
        ({"beam_size": "5"}, "beam_size '5' is not a whole number"),
        ({"n_best": 0}, "n_best 0 is not between 1 and beam_size = 5"),
        ({"n_best": 6, "beam_size": 5}, "n_best 6 is not between 1 and beam_size = 5"),
        ({"n_best": 1.0}, "n_best 1.0 is not a whole number"),
        ({"format": "docx"}, "format 'docx' is not one of text"),
        ({"length_penalty": -0.5}, "length_penalty -0.5 is not a number from 0 up"),
        ({"length_penalty": float("nan")}, "length_penalty nan is not a number from 0 up"),
        ({"length_penalty": float("inf")}, "length_penalty inf is not a number from 0 up"),
    ],
)
def test_an_option_out_of_range_is_refused(translator, options, message):
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        translator.translate(SENTENCE, **options)


def test_an_unknown_engine_or_model_is_refused():
    with pytest.raises(UserError, match="engine 'jax' is not one of torch, ctranslate2"):
        Translator.from_pretrained(engine="jax")
    with pytest.raises(UserError, match=r"model 'en-xx' is neither a folder nor a bundled model \(en-fr"):
        Translator.from_pretrained("en-xx")


# Attention and alignment


@pytest.mark.parametrize("beam_size", [1, 4])
def test_attention_has_a_row_of_weights_for_every_target_token(translator, beam_size):
    result = translator.translate(SENTENCE, beam_size=beam_size)
    model = translator.info.model
    shape = (model.decoder_layers, model.heads, len(result.target_tokens), len(result.source_tokens))
    assert result.attention.shape == shape
    assert (result.attention >= 0).all()
    assert result.attention.sum(axis=-1) == pytest.approx(np.ones(shape[:3]), abs=1e-5)
    assert result.source_tokens[-1] == result.target_tokens[-1] == "</s>"


def test_attention_of_a_sentence_is_the_same_alone_and_in_a_batch(translator):
    batch = translator.translate(VARIED[:8])
    for text, together in zip(VARIED[:8], batch, strict=True):
        assert translator.translate(text).attention == pytest.approx(together.attention, abs=1e-5)


def test_without_attention_the_text_is_the_same_and_the_fields_say_what_to_do(translator):
    result = translator.translate(SENTENCE, attention=False)
    assert result.text == translator.translate(SENTENCE).text
    for field in (
        lambda: result.attention,
        lambda: result.alignment,
        result.word_attention,
        result.sentences[0].piece_attention,
    ):
        with pytest.raises(UserError, match="carries no attention: translate with attention=True"):
            field()


FIELDS = [
    "attention",
    "alignment",
    "alternatives",
    "score",
    "source_tokens",
    "source_words",
    "target_tokens",
    "target_words",
]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(("text", "count"), [("The cat sleeps. The dog runs.", 2), ("42", 0)])
def test_a_field_of_the_only_sentence_needs_exactly_one(translator, field, text, count):
    result = translator.translate(text)
    with pytest.raises(UserError, match=rf"{field}: the text has {count} translated sentences, not one.*\.sentences"):
        getattr(result, field)


def test_word_attention_of_several_sentences_is_in_sentences(translator):
    result = translator.translate("The cat sleeps. The dog runs.")
    with pytest.raises(UserError, match=r"word_attention: .*\.sentences"):
        result.word_attention()
    assert [sentence.word_attention().ndim for sentence in result.sentences] == [2, 2]


def test_words_are_split_at_spaces_with_outer_punctuation_apart(translator):
    result = translator.translate("The cat's bed, isn't it?")
    assert result.source_words == ["The", "cat's", "bed", ",", "isn't", "it", "?"]
    assert "".join(result.target_words) == "".join(result.text.split())
    assert "</s>" not in result.target_words


@pytest.mark.parametrize("choice", [{}, {"layer": 0}, {"layer": 1, "head": 2}])
def test_word_attention_has_a_row_for_every_target_word_of_at_most_one(translator, choice):
    result = translator.translate(SENTENCE)
    words = result.word_attention(**choice)
    assert words.shape == (len(result.target_words), len(result.source_words))
    assert (words >= 0).all()
    assert (words.sum(axis=1) <= 1 + 1e-5).all()
    assert (words.sum(axis=1) > 0).all()


def test_piece_attention_without_a_head_is_the_mean_of_the_heads(translator):
    sentence = translator.translate(SENTENCE).sentences[0]
    assert sentence.piece_attention(layer=1) == pytest.approx(sentence.attention[1].mean(axis=0))
    assert sentence.piece_attention(layer=1, head=3) == pytest.approx(sentence.attention[1, 3])


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"layer": 99}, "layer 99 is not one of 0 to"),
        ({"layer": -1}, "layer -1 is not one of 0 to"),
        ({"layer": 0, "head": 99}, "head 99 is not one of 0 to"),
        ({"head": 0}, "layer None is not one of 0 to"),
    ],
)
def test_a_layer_or_head_that_does_not_exist_is_refused(translator, choice, message):
    result = translator.translate(SENTENCE)
    with pytest.raises(UserError, match=message):
        result.word_attention(**choice)


def test_alignment_links_a_target_word_once_and_to_a_word_that_exists(translator):
    for result in translator.translate(VARIED[:10]):
        targets = [link.target for link in result.alignment]
        assert targets == sorted(set(targets))  # a taught head may leave some without a link
        assert set(targets) <= set(range(len(result.target_words)))
        assert len(targets) >= 0.6 * len(result.target_words)
        for link in result.alignment:
            assert 0 <= link.source < len(result.source_words)
            assert link.weight == pytest.approx(result.word_attention()[link.target, link.source])


def test_the_attention_that_aligns_is_read_at_its_step_and_all_other_as_it_is():
    loaded = loaded_model()
    choice = AlignmentChoice(layer=1, head=0, step="input")
    info = loaded.info.model_copy(update={"alignment": choice})
    later, plain = (
        Translator(one).translate("the cat sees a dog.", beam_size=1).sentences[0]
        for one in (replace(loaded, info=info), loaded)
    )
    assert (later.attention == plain.attention).all()
    assert (later.piece_attention() == plain.attention[1, 0]).all()
    moved = np.concatenate([plain.attention[1, 0, 1:], plain.attention[1, 0, -1:]])
    assert (later.read_attention() == moved).all()
    assert (later.read_attention(1, 0) == moved).all()
    assert (later.read_attention(0, 0) == plain.attention[0, 0]).all()
    words = word_attention(moved, merge_pieces(later.source_tokens[:-1]), merge_pieces(later.target_tokens[:-1]))
    assert (later.word_attention() == words).all()
    assert later.alignment == links(words, later.source_words, later.target_words)


# Long, odd and hostile input


def test_a_paragraph_of_a_hundred_sentences_keeps_every_one(translator):
    result = translator.translate(" ".join(VARIED[number % 40] for number in range(100)), attention=False, beam_size=1)
    assert [sentence.source for sentence in result.sentences] == [VARIED[number % 40] for number in range(100)]
    assert "".join(result.text.split()) == "".join("".join(s.text.split()) for s in result.sentences)


def test_a_long_sentence_is_translated_in_parts_that_hold_all_of_it(translator):
    text = ", ".join(f"the {animal} sleeps and the bird sings" for animal in ("cat", "dog", "horse", "cow") * 12)
    result = translator.translate(text, attention=False, beam_size=1)
    assert len(result.sentences) > 2
    assert " ".join(sentence.source for sentence in result.sentences) == text
    assert all(sentence.text for sentence in result.sentences)
    limit = translator.info.decode.max_source_tokens
    assert max(len(sentence.source_tokens) for sentence in result.sentences) <= limit
    assert all(sentence.source.endswith(",") for sentence in result.sentences[:-1])


@pytest.mark.parametrize("letters", [46, 3000])
def test_a_run_of_letters_that_is_no_word_passes_through(translator, letters):
    run = ("pneumono" * 375)[:letters]
    assert translator.translate(run).text == run
    result = translator.translate(f"The cat {run} sleeps.", attention=False)
    assert run in result.text
    assert [sentence.source for sentence in result.sentences] == ["The cat", "sleeps."]


def test_a_sentence_in_capitals_is_translated_as_if_it_were_not(translator):
    quiet, loud = translator.translate(["Where is the old house?", "WHERE IS THE OLD HOUSE?"], n_best=2)
    assert loud.text == quiet.text.upper()
    assert [found.text for found in loud.alternatives] == [found.text.upper() for found in quiet.alternatives]
    assert loud.source_tokens == quiet.source_tokens


@pytest.mark.parametrize(
    "text",
    [
        " ".join("x" * length for length in range(30, 46)),
        "1234567 " * 60 + "boats",
        "boats " + "1234567 " * 60,
        "你好 " * 100,
        "ab" * 22 + " b",
        ("so, " * 70 + "😀 ") * 2 + "\n\n" + "and " * 200,
    ],
    ids=["long words", "digits first", "digits last", "bytes", "word at the limit", "mixed"],
)
def test_parts_fit_together_as_the_text_was(echo, translator, text):
    result = echo.translate(text, attention=False)
    assert result.text == text
    assert all(any(map(str.isalpha, sentence.source)) for sentence in result.sentences)
    limit = translator.info.decode.max_source_tokens
    assert max(len(sentence.source_tokens) for sentence in result.sentences) <= limit


@given(st.text(alphabet=st.sampled_from('aé B.?!,\n\r\u2028😀7…"-'), max_size=80))
def test_nothing_but_runs_of_spaces_is_lost_on_the_way_to_the_model_and_back(echo, text):
    def squeezed(text: str) -> str:
        return re.sub(r"[^\S\n]+", " ", text)

    assert squeezed(echoed(echo, text)) == squeezed(text)


def test_a_very_long_text_is_cut_in_time_that_grows_with_its_length(echo):
    text = "the cat sleeps and the dog runs and " * 2000 + "so on"
    assert echoed(echo, text) == text


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("The cat\x00 sleeps.", "The cat sleeps."),
        ("The infor\u00adma\u00adtion is here.", "The information is here."),
        ("The\tcat\u2028sleeps.", "The cat sleeps."),
        ("\ufeffThe cat sleeps.", "The cat sleeps."),
    ],
)
def test_invisible_characters_inside_a_sentence_change_nothing(translator, text, same):
    assert translator.translate(text, attention=False).text == translator.translate(same, attention=False).text


@pytest.mark.parametrize("text", ["\ud800 hello", "hello \udfff", "\ud800", "he\ud800llo", "hello\ud800\nyou"])
def test_half_a_surrogate_pair_becomes_the_replacement_sign(echo, text):
    assert echoed(echo, text) == re.sub("[\ud800-\udfff]", "\ufffd", text)


def test_two_halves_of_a_surrogate_pair_are_one_character(echo):
    assert echoed(echo, "hello \ud83d\ude00") == "hello 😀"
