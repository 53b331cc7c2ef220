"""The model card: front matter that the hub reads, and what a reader must know before using the model."""

import re

import pytest
import yaml
from huggingface_hub import ModelCard

from seq2seq.cli import build_parser
from seq2seq.config import DataConfig, ModelConfig, Recipe, TrainConfig
from seq2seq.evaluation import score
from seq2seq.training.card import model_card
from seq2seq.training.state import Progress

PROGRESS = Progress(update=12_000, tokens=34_567_890, seconds=5400, data="5f" * 32, precision="bfloat16")
SCORES = {"dev_loss": 1.75, "dev_perplexity": 5.755, "dev_bleu": 31.25}
RECORD = {
    "versions": {"seq2seq": "0.1.0", "python": "3.11.9", "torch": "2.13.0"},
    "git": {"commit": "0123abc", "dirty": True},
    "seed": 7,
    "processes": 2,
    "threads": 4,
    "machine": "a processor | 4 cores",
    "data": {"train": {"pairs": 120_000}, "dropped": {"too_long": 12}, "checked": True, "examples": ["kept out"]},
}


def recipe(**data):
    return Recipe(data=DataConfig(**({"dataset": "tatoeba"} | data)))


def front_matter(card):
    start, front, _ = re.split(r"^---\n", card, maxsplit=2, flags=re.MULTILINE)
    assert start == ""
    return yaml.safe_load(front)


def test_the_front_matter_says_what_the_hub_asks():
    front = front_matter(model_card(recipe(), PROGRESS, SCORES))
    assert front["language"] == ["en", "fr"]
    assert front["license"] == "cc-by-2.0"
    assert (front["library_name"], front["pipeline_tag"]) == ("seq2seq", "translation")
    assert front["metrics"] == ["bleu", "perplexity"]
    assert "datasets" not in front  # Tatoeba by manythings.org is no dataset of the hub
    [result] = front["model-index"][0]["results"]
    assert result["task"]["type"] == "translation"
    assert result["dataset"] == {"type": "tatoeba", "name": "tatoeba", "split": "dev"}
    assert [(metric["type"], metric["value"]) for metric in result["metrics"]] == [
        ("bleu", 31.25),
        ("perplexity", 5.755),
    ]


def test_the_hubs_own_reader_finds_the_results():
    data = ModelCard(model_card(recipe(), PROGRESS, SCORES)).data
    assert data.model_name == "seq2seq en-fr"
    assert [(result.metric_type, result.metric_value) for result in data.eval_results] == [
        ("bleu", 31.25),
        ("perplexity", 5.755),
    ]


@pytest.mark.parametrize(
    "odd", ["no", "zh-Hant", "x: y", "- #'\"", "a\nb", "ça 🙂", "---", "~", "1e3", "{a: [", "\x85\u2028"]
)
def test_any_language_and_any_dataset_make_valid_front_matter(odd):
    front = front_matter(model_card(recipe(source=odd, dataset=f"hub:{odd}"), PROGRESS, SCORES))
    assert front["language"] == [odd, "fr"]
    assert front["datasets"] == [odd]
    assert front["model-index"][0]["results"][0]["dataset"]["name"] == odd


@pytest.mark.parametrize(
    ("dataset", "licence"), [("multi30k", "other"), ("sample", None), ("files", None), ("hub:a/b", None)]
)
def test_a_licence_is_only_stated_where_it_is_known(dataset, licence):
    assert front_matter(model_card(recipe(dataset=dataset), PROGRESS, {})).get("license") == licence


@pytest.mark.parametrize(
    ("dataset", "extra", "licence"),
    [
        ("tatoeba", "more.tsv", None),
        ("tatoeba", "tatoeba", "cc-by-2.0"),
        ("tatoeba", "multi30k", "other"),
        ("multi30k", "tatoeba", "other"),
        ("files", "tatoeba", None),
    ],
)
def test_a_mixture_has_the_narrowest_licence_and_names_its_parts(dataset, extra, licence):
    card = model_card(recipe(dataset=dataset, extra=[extra]), PROGRESS, {})
    assert front_matter(card).get("license") == licence
    assert f"Further training pairs: `{extra}`." in card
    assert ("for non-commercial research and education only" in card) == (licence == "other")


def test_a_run_that_started_from_a_model_says_so_and_states_no_licence():
    card = model_card(recipe().model_copy(update={"train": TrainConfig(init="runs/a/model")}), PROGRESS, {})
    assert "started from the weights of `runs/a/model`" in card
    assert "license" not in front_matter(card)


def test_scores_of_a_test_split_are_a_result_of_their_own_and_odd_numbers_are_none():
    scores = {"dev_bleu": 30.0, "test_bleu": 28.5, "test_chrf": float("nan"), "dev_loss": 2.0}
    results = front_matter(model_card(recipe(), PROGRESS, scores))["model-index"][0]["results"]
    assert [(result["dataset"]["split"], len(result["metrics"])) for result in results] == [("dev", 1), ("test", 1)]


def test_the_card_tells_what_the_run_wrote_down():
    card = model_card(recipe(), PROGRESS, SCORES, RECORD)
    for row in (
        "| spent | 12,000 updates, 34,567,890 target tokens, 90 minutes |",
        "| seed | 7 |",
        "| processes | 2 |",
        r"| machine | a processor \| 4 cores |",
        "| versions | seq2seq 0.1.0, python 3.11.9, torch 2.13.0 |",
        "| commit | 0123abc with changes that were not committed |",
        "| train, pairs | 120,000 |",
        "| dropped, too long | 12 |",
        "| checked | True |",
        "| dev bleu | 31.250 |",
    ):
        assert f"\n{row}\n" in card, row
    assert "5f" * 32 in card
    assert "CC-BY 2.0 FR" in card
    assert "kept out" not in card


@pytest.mark.parametrize("missing", [*RECORD, None])
def test_every_part_of_the_record_may_be_missing(missing):
    for record in ({key: value for key, value in RECORD.items() if key != missing}, dict.fromkeys(RECORD), {}, None):
        card = model_card(recipe(), PROGRESS, {}, record)
        assert "None |" not in card
        assert "## Limits" in card
    assert "| seed | 1 |" in model_card(recipe(), PROGRESS, SCORES)  # the recipe's own


def test_a_bleu_comes_with_the_settings_of_the_signature_that_it_was_measured_by():
    signature = score(["Un chat dort."], [["Un chat dort."]]).signatures["bleu"]
    assert signature.removeprefix("nrefs:1|") in model_card(recipe(), PROGRESS, SCORES)


def test_the_commands_of_a_card_are_understood():
    card = model_card(recipe(), PROGRESS, SCORES)
    found = re.findall(r"^seq2seq (.*)$", card, re.MULTILINE)
    assert len(found) == 2
    for command in found:
        assert build_parser().parse_args(command.split(" < ")[0].split()).run


def test_the_recipe_comes_back_from_the_card():
    mine = Recipe(data=DataConfig(train=["a.en", "a.fr"]), model=ModelConfig(d_model=64))
    [text] = re.findall(r"```json\n(.*?)\n```", model_card(mine, PROGRESS, SCORES), re.DOTALL)
    assert Recipe.model_validate_json(text) == mine
