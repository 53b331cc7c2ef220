"""Terms are found, their translations are written, and nothing better that contains them is missed."""

import json
import re
import time
from itertools import product

import pytest
from test_search import BEGIN, END, ENDS, SEEDS, WORDS, TableStepper, drawn

from seq2seq import Translator
from seq2seq.cli import main
from seq2seq.errors import UserError
from seq2seq.translation.constrained import Constraints, Progress, constrained_search
from seq2seq.translation.glossary import Glossary, read_glossary, stands_in

BANK = "The bank was crowded near the river."


def contains(tokens: tuple[int, ...], phrase: tuple[int, ...]) -> bool:
    return any(tokens[i : i + len(phrase)] == phrase for i in range(len(tokens)))


def best_by_force(seed: int, limit: int, phrases: list[tuple[int, ...]]) -> tuple[tuple[int, ...], float]:
    """The best of all translations of at most so many tokens that contain the phrases, none within another."""
    found = {}
    for length in range(limit):
        for words in product(range(WORDS), repeat=length):
            if all(contains(words, phrase) for phrase in phrases):
                tokens, prefix, total = (*words, END), (seed, 0, BEGIN), 0.0
                for token in tokens:
                    total += drawn(prefix)[token].item()
                    prefix = (*prefix, token)
                found[tokens] = total / len(tokens)
    best = max(found, key=found.__getitem__)
    return best, found[best]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("phrases", [[(2,)], [(1, 3)], [(0,), (3,)], [(3, 0), (1,)], [(1, 2), (1, 3)], [(0, 0, 1)]])
def test_a_wide_beam_finds_the_best_of_all_that_contain_the_phrases(seed, phrases):
    found = constrained_search(TableStepper(seed, 1), 5, Constraints(tuple(phrases)), beam_size=400, **ENDS)
    best, score = best_by_force(seed, 5, phrases)
    assert found[0].tokens == best
    assert found[0].score == pytest.approx(score)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_a_narrow_beam_writes_every_phrase(seed, beam_size):
    phrases = [(3, 0), (1,), (2, 2)]
    found = constrained_search(TableStepper(seed, 1), 12, Constraints(tuple(phrases)), beam_size=beam_size, **ENDS)
    assert 1 <= len(found) <= beam_size
    for one in found:
        assert all(contains(one.tokens, phrase) for phrase in phrases)
        assert one.tokens[-1] == END


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_forbidden_is_not_written(seed):
    wanted = Constraints(((2,),), forbidden=((1,), (0, 3)), joined=frozenset({2, 3}), marks=frozenset({0}))
    found = constrained_search(TableStepper(seed, 1), 6, wanted, beam_size=50, **ENDS)
    assert len(found) > 10
    for one in found:
        assert contains(one.tokens, (2,))
        assert not contains(one.tokens, (1,))
        assert not contains(one.tokens, (0, 3))
        assert not contains(one.tokens, (2, 2))
        assert not contains(one.tokens, (2, 3))
        assert 0 not in one.tokens or one.tokens.index(0) > one.tokens.index(2)


def test_phrases_that_do_not_fit_give_nothing():
    assert constrained_search(TableStepper(0, 1), 3, Constraints(((1, 2, 3),)), beam_size=5, **ENDS) == []


def test_a_long_glossary_costs_no_more_than_its_sentence(translator: Translator):
    terms = dict.fromkeys(("bank", "crowded", "river", "near"), "😀" * 100)
    started = time.perf_counter()
    result = translator.translate(BANK, glossary=terms)
    assert time.perf_counter() - started < 10
    assert [term.kept for term in result.sentences[0].terms] == [False] * 4
    assert result.text == translator.translate(BANK).text


def test_a_term_may_be_a_word_that_would_be_protected(translator: Translator):
    result = translator.translate("My iPhone is broken.", glossary={"iPhone": "téléphone"})
    assert "téléphone" in result.text
    assert result.sentences[0].terms == (("iPhone", "téléphone", True),)


def test_quotes_of_a_term_are_as_the_model_reads_them():
    assert Glossary.of({"don’t": "ne"}).wanted("I don't know.") == [("don't", "ne")]


def test_a_phrase_that_is_broken_off_is_to_be_written_anew():
    phrases = [(1, 2), (1, 3), (1, 1, 4)]
    one = Progress().after(1, phrases)
    assert one.count(phrases) == 1
    assert one.after(2, phrases) == Progress(frozenset({0}))
    assert one.after(3, phrases) == Progress(frozenset({1}))
    assert one.after(0, phrases) == Progress()
    assert one.after(1, phrases).count(phrases) == 2
    assert one.after(1, phrases).after(1, phrases).after(4, phrases) == Progress(frozenset({2}))


@pytest.mark.parametrize(
    ("sentence", "terms"),
    [
        ("The Bank is here.", ["bank"]),
        ("The banks are here.", []),
        ("The river bank, the bank.", ["river bank", "bank"]),
        ("e-bank", ["bank"]),
        ("nothing", []),
    ],
)
def test_terms_are_whole_words_in_any_case_longest_first(sentence, terms):
    glossary = Glossary.of({"bank": "rive", "river bank": "berge"})
    assert [term for term, _ in glossary.wanted(sentence)] == terms


def test_of_two_glossaries_the_second_one_decides():
    both = Glossary.of({"Bank": "rive", "cat": "minou"}).updated(Glossary.of({"bank": "berge", "dog": "toutou"}))
    assert dict(both.terms) == {"bank": "berge", "dog": "toutou", "cat": "minou"}


@pytest.mark.parametrize(
    ("text", "sentence", "stands"),
    [
        ("rive", "Il arrive.", False),
        ("rive", "La Rive !", True),
        ("5 €", "Cela coûte 15 €.", False),
        ("€", "Cela coûte 5€.", True),
        ("C++", "J'aime C++, toi ?", True),
    ],
)
def test_a_translation_stands_in_a_sentence_as_words_of_its_own(text, sentence, stands):
    assert stands_in(text, sentence) is stands


def test_more_terms_than_can_be_put_in_are_all_told(translator: Translator):
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    glossary = {word: f"{word}ette" for word in words}
    (sentence,) = translator.translate(" ".join(words).capitalize() + ".", glossary=glossary).sentences
    assert [term.source for term in sentence.terms] == words
    assert [term.kept for term in sentence.terms[8:]] == [False, False]


@pytest.mark.parametrize("translation", ["rive", "berge", "grande banque centrale"])
@pytest.mark.parametrize("beam_size", [1, 5])
def test_a_translation_is_written(translator: Translator, translation, beam_size):
    result = translator.translate(BANK, beam_size=beam_size, glossary={"bank": translation})
    assert translation in result.text
    assert result.text.endswith(".")
    [term] = result.sentences[0].terms
    assert term == ("bank", translation, True)
    assert result.alignment


@pytest.mark.parametrize(
    ("text", "term", "translation", "gone"),
    [
        ("The bank was crowded.", "bank", "rive", "banque"),
        ("The cat is asleep.", "cat", "minou", "chat"),
        ("My house is red.", "house", "baraque", "maison"),
        ("I see a cat.", "cat", "minou", "chat"),
        ("Tom is here.", "Tom", "Tomás", "Tom "),
    ],
)
def test_a_term_takes_the_place_of_what_it_would_have_become(translator: Translator, text, term, translation, gone):
    assert gone in translator.translate(text, attention=False).text + " "
    result = translator.translate(text, attention=False, glossary={term: translation}).text
    assert re.search(rf"\b{translation}\b", result)
    assert gone not in result
    assert result.endswith(".")
    assert not result.endswith(f"{translation}.") or text.endswith(f"{term}.")


def test_several_terms_each_take_a_place_of_their_own(translator: Translator):
    terms = {"river": "fleuve", "bank": "rive", "house": "baraque"}
    result = translator.translate("The house near the bank of the river is red.", glossary=terms)
    assert [term.kept for term in result.sentences[0].terms] == [True] * 3
    assert [result.text.count(word) for word in ("fleuve", "rive", "baraque")] == [1, 1, 1]
    assert "maison" not in result.text


def test_other_sentences_are_as_without_a_glossary(translator: Translator):
    texts = ["The cat sleeps.", BANK, "The dog runs."]
    plain = translator.translate(texts, attention=False)
    found = translator.translate(texts, attention=False, glossary={"bank": "rive"})
    assert [a.text == b.text for a, b in zip(plain, found, strict=True)] == [True, False, True]
    assert translator.translate(BANK, glossary={}).text == plain[1].text


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"bank": ""}, "glossary: '' is no word or words"),
        ({"bank": 5}, "glossary: 5 is no word or words"),
        ({"x" * 200: "y"}, "has 200 characters, over the limit of 100"),
        ({str(n): "y" for n in range(1001)}, "1,001 terms are over the limit of 1,000"),
    ],
)
def test_a_glossary_that_cannot_be_used_is_refused(translator: Translator, terms, message):
    with pytest.raises(UserError, match=message):
        translator.translate(BANK, glossary=terms)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.json", '{"bank": "rive"}'),
        ("words", ' {"bank": "rive"}'),
        ("g.tsv", "\ufeff# words\nbank\trive\r\n\n"),
    ],
)
def test_a_glossary_is_read_from_a_file(tmp_path, capsys, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert read_glossary(tmp_path / name) == Glossary((("bank", "rive"),))
    assert main(["translate", "--json", "--glossary", str(tmp_path / name), BANK]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["sentences"][0]["glossary"] == [{"source": "bank", "target": "rive", "kept": True}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.json", "[1]", "not an object of terms and their translations"),
        ("g", "{", "is no JSON"),
        ("g.tsv", "bank\n", "line 1: not term TAB translation"),
    ],
)
def test_a_file_that_is_no_glossary_is_refused(tmp_path, name, content, message):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read_glossary(tmp_path / name)


def test_the_fast_engine_honours_a_glossary_too(fast: Translator):
    assert "rive" in fast.translate(BANK, glossary={"bank": "rive"}, attention=False).text


def test_the_stepper_of_the_model_takes_any_number_of_rows(translator: Translator):
    ids = (*translator.tokenizer.encode(BANK), translator.tokenizer.eos_id)
    wanted = Constraints(tuple(tuple(translator.tokenizer.encode(word)) for word in ("rive", "fleuve", "hier")))
    found = translator.engine.constrained(ids, wanted, 3, 1.0)
    assert len(found) == 3
    assert all(contains(one.tokens, phrase) for one in found for phrase in wanted.phrases)
