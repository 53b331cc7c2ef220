"""What takes minutes: the recipe that learns, and the bundled model on real data. Run by `make test-slow`."""

from pathlib import Path

import pytest

from seq2seq import Translator
from seq2seq.config import DataConfig, load_recipe
from seq2seq.data.corpus import MIRROR, load_split
from seq2seq.data.splits import Example, group_references
from seq2seq.evaluation import score
from seq2seq.training.loop import train
from seq2seq.training.metrics import read_metrics

pytestmark = pytest.mark.slow
RECIPE = Path(__file__).parents[1] / "configs/sample.toml"


@pytest.fixture(scope="module")
def examples(real_data: Path) -> list[Example]:
    """The leak-free test split of Tatoeba."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MIRROR, str(real_data))
        return group_references(load_split(DataConfig(dataset="tatoeba"), "test"))


def test_the_sample_recipe_visibly_learns_and_its_model_translates(tmp_path: Path) -> None:
    model = train(load_recipe(RECIPE), tmp_path / "run")
    dev = [row for row in read_metrics(tmp_path / "run/metrics.jsonl") if "dev_bleu" in row]
    assert dev[-1]["dev_loss"] < dev[0]["dev_loss"]
    assert max(row["dev_bleu"] for row in dev) > 5
    assert Translator.from_pretrained(model).translate("The dog is in the garden.").text


def test_the_bundled_model_reaches_what_the_readme_says(translator: Translator, examples: list[Example]) -> None:
    results = translator.translate([example.source for example in examples], attention=False)
    scores = score([result.text for result in results], [example.references for example in examples])
    assert scores.bleu >= 53


def test_a_sentence_translates_the_same_alone_and_in_a_batch(translator: Translator, examples: list[Example]) -> None:
    sources = [example.source for example in examples]
    together = translator.translate(sources, attention=False)
    alone = [translator.translate(source, attention=False) for source in sources]
    different = sum(a.text != b.text for a, b in zip(together, alone, strict=True))
    assert different <= len(sources) / 1000
