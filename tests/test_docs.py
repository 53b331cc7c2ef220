"""What README and docs say: the commands are understood, the Python runs, the links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest

from seq2seq import Translator
from seq2seq.cli import build_parser
from seq2seq.folder import PRETRAINED

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *PRETRAINED.glob("*/README.md"), *ROOT.glob("models/*/README.md")]
)
RECIPES = sorted(ROOT.glob("configs/*.toml"))
COMMAND = re.compile(r"^(?:# )?(seq2seq [a-z].*)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def commands(text: str) -> list[list[str]]:
    """Arguments of every `seq2seq` line of a text, without comments and redirections."""
    found = []
    for line in COMMAND.findall(text):
        words = shlex.split(line, comments=True)
        stop = next((i for i, word in enumerate(words) if word in ("<", ">", "|")), len(words))
        found.append(words[1:stop])
    return found


def test_the_readme_has_commands() -> None:
    assert len(commands((ROOT / "README.md").read_text(encoding="utf-8"))) >= 6


@pytest.mark.parametrize("page", [*PAGES, *RECIPES], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_one_that_the_program_takes(page: Path) -> None:
    for arguments in commands(page.read_text(encoding="utf-8")):
        assert build_parser().parse_args(arguments).run is not None


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_number_is_still_to_come(page: Path) -> None:
    assert "@@" not in page.read_text(encoding="utf-8")


def test_every_recipe_that_the_docs_name_exists() -> None:
    for page in PAGES:
        for name in re.findall(r"configs/[\w-]+\.toml", page.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), f"{page.name} names {name}"


def test_the_readmes_python_runs(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Translator, "from_pretrained", lambda: translator)
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    scope: dict[str, object] = {}
    exec(code, scope)
    assert "result" in scope


def test_the_bundled_model_is_small_and_has_a_card_with_attribution() -> None:
    folder = PRETRAINED / "en-fr"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 25e6
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "CC-BY 2.0 FR" in card
    assert "tatoeba.org" in card
