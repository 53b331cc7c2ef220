"""Models that lie beside the package."""

from pathlib import Path

import pytest

from seq2seq.cli import main
from seq2seq.folder import PRETRAINED, load_info

MODELS = Path(__file__).parents[1] / "models"
MULTI30K = MODELS / "multi30k"


def test_the_multi30k_model_translates_captions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "--model", str(MULTI30K), "A man in a red shirt is riding a bicycle."]) == 0
    out = capsys.readouterr().out
    assert "homme" in out
    assert "rouge" in out


def test_its_card_says_what_it_may_be_used_for() -> None:
    card = (MULTI30K / "README.md").read_text(encoding="utf-8")
    assert "license_name: non-commercial-research-and-education" in card
    assert "non-commercial" in card.split("---", 2)[2]


def test_the_way_back_is_bundled_and_small(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "--model", "fr-en", "Le chien dort."]) == 0
    assert "dog" in capsys.readouterr().out
    assert sum(file.stat().st_size for file in (PRETRAINED / "fr-en").iterdir()) < 12e6


@pytest.mark.parametrize(
    "folder", sorted(path for path in MODELS.iterdir() if path.is_dir()), ids=lambda path: path.name
)
def test_every_model_is_small(folder: Path) -> None:
    assert sum(file.stat().st_size for file in folder.iterdir()) < 25e6
    assert load_info(folder).model.d_model > 0
