import re
from pathlib import Path

import pytest

from seq2seq.config import ModelConfig, Recipe, load_recipe, validate
from seq2seq.errors import UserError

RECIPES = sorted((Path(__file__).parents[1] / "configs").glob("*.toml"))


def recipe(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_bytes(text.encode())
    return path


def test_there_are_shipped_recipes():
    assert {"sample", "en-fr"} <= {path.stem for path in RECIPES}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_shipped_recipe_loads_and_begins_with_the_command_that_runs_it(path):
    load_recipe(path)
    assert path.read_text(encoding="utf-8").startswith(f"# seq2seq train configs/{path.name}\n")


def test_an_empty_recipe_is_the_defaults(tmp_path):
    assert load_recipe(recipe(tmp_path, "")) == Recipe()


def test_a_value_of_the_recipe_replaces_the_default(tmp_path):
    loaded = load_recipe(recipe(tmp_path, "[model]\nd_model = 64\n[decode]\nlength_penalty = 2\n"))
    assert (loaded.model.d_model, loaded.decode.length_penalty) == (64, 2.0)
    assert loaded.train == Recipe().train


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[train]\nlearning_rat = 1\n", "unknown setting 'train.learning_rat'; did you mean 'learning_rate'?"),
        ("[modle]\nheads = 4\n", "unknown setting 'modle'; did you mean 'model'?"),
        ("updates = 5\n", "unknown setting 'updates'"),
        ("[data]\nzzzzzz = 1\n", "unknown setting 'data.zzzzzz'"),
        ("[train]\nupdates = 'many'\n", "train.updates = 'many': Input should be a valid integer"),
        ("[train]\nupdates = 2.5\n", "train.updates = 2.5: Input should be a valid integer"),
        ("[train]\nlearning_rate = '1e-3'\n", "train.learning_rate = '1e-3': Input should be a valid number"),
        ("[model]\ndropout = true\n", "model.dropout = True: Input should be a valid number"),
        ("[data]\ntrain = 'a.tsv'\n", "data.train = 'a.tsv': Input should be a valid list"),
        ("[data]\ntrain = [1]\n", "data.train.0 = 1: Input should be a valid string"),
        ("[data]\ndrop_copies = 1\n", "data.drop_copies = 1: Input should be a valid boolean"),
        ("[data]\nsubset = ''\n", "data.subset = '': String should have at least 1 character"),
        ("[train]\ninit = ''\n", "train.init = '': String should have at least 1 character"),
        ("[train]\nlinks = ''\n", "train.links = '': String should have at least 1 character"),
        ("model = 3\n", "model = 3: Input should be a valid dictionary"),
        ("[train]\nupdates = 0\n", "train.updates = 0: Input should be greater than or equal to 1"),
        ("[train]\nschedule = 'lineal'\n", "train.schedule = 'lineal': Input should be"),
        ("[model]\nd_model = 255\n", "d_model = 255 must be even"),
        ("[model]\nd_model = 256\nheads = 3\n", "d_model = 256 is not divisible by heads = 3; set d_head"),
        (
            '[tokenizer]\nkind = "bpe"\n[variation]\nsampled_pieces = 0.5\n',
            "variation.sampled_pieces needs tokenizer.kind = 'unigram': BPE has one cut of a text",
        ),
    ],
)
def test_a_wrong_recipe_is_refused_in_one_line_that_names_the_setting(tmp_path, text, message):
    path = recipe(tmp_path, text)
    with pytest.raises(UserError, match=re.escape(f"{path}: {message}")) as caught:
        load_recipe(path)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_without_a_near_one_gets_no_guess(tmp_path):
    with pytest.raises(UserError, match=r"unknown setting 'data\.zzzzzz'$"):
        load_recipe(recipe(tmp_path, "[data]\nzzzzzz = 1\n"))


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("train.minutes=10", 10.0),
        ("train.updates=1_000", 1000),
        ("train.learning_rate=1e-4", 1e-4),
        ("train.learning_rate = 3e-3", 3e-3),
        ("data.drop_copies=false", False),
        ("data.dataset=tatoeba", "tatoeba"),
        ('data.dataset="tatoeba"', "tatoeba"),
        ("data.dataset='tatoeba'", "tatoeba"),
        ("data.dataset=hub:some/name", "hub:some/name"),
        ("data.subset=a=b", "a=b"),
        ('data.train=["a.en", "a.fr"]', ["a.en", "a.fr"]),
    ],
)
def test_an_override_is_a_toml_value_or_a_bare_string(tmp_path, override, value):
    loaded = load_recipe(recipe(tmp_path, "[train]\nupdates = 7\n"), [override])
    section, key = override.split("=")[0].strip().split(".")
    assert getattr(getattr(loaded, section), key) == value


def test_overrides_keep_the_rest_of_the_section_and_the_last_one_wins(tmp_path):
    path = recipe(tmp_path, "[train]\nupdates = 7\nseed = 3\n")
    assert load_recipe(path, ["train.updates=8", "train.updates=9"]).train.model_dump() == {
        **Recipe().train.model_dump(),
        "updates": 9,
        "seed": 3,
    }


@pytest.mark.parametrize("override", ["train.updates", "updates=3", "=3", ".updates=3", "train.=3", ""])
def test_an_override_of_another_form_is_refused(tmp_path, override):
    with pytest.raises(UserError, match=r"^--set .* must read section\.key=value"):
        load_recipe(recipe(tmp_path, ""), [override])


def test_an_override_into_what_is_no_section_is_refused(tmp_path):
    with pytest.raises(UserError, match="'model' is not a section of the recipe"):
        load_recipe(recipe(tmp_path, "model = 3\n"), ["model.heads=2"])


def test_an_override_is_validated_like_the_recipe(tmp_path):
    with pytest.raises(UserError, match=r"unknown setting 'train\.update'; did you mean 'updates'"):
        load_recipe(recipe(tmp_path, ""), ["train.update=3"])
    with pytest.raises(UserError, match=r"train\.updates = 'few': Input should be a valid integer"):
        load_recipe(recipe(tmp_path, ""), ["train.updates=few"])


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_recipe(tmp_path):
    assert load_recipe(recipe(tmp_path, "\ufeff[model]\r\nheads = 2\r\n")).model.heads == 2


def test_a_missing_recipe_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"none\.toml does not exist"):
        load_recipe(tmp_path / "none.toml")


def test_a_recipe_that_is_no_toml_names_the_line(tmp_path):
    with pytest.raises(UserError, match=r"is not valid TOML: .*line 2"):
        load_recipe(recipe(tmp_path, "[model]\nheads 4\n"))


def test_a_recipe_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        load_recipe(tmp_path)
    (tmp_path / "latin.toml").write_bytes("# été\n".encode("latin-1"))
    with pytest.raises(UserError, match="cannot be read"):
        load_recipe(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("values", "width"), [({"d_model": 256, "heads": 8}, 32), ({"d_model": 128, "heads": 1, "d_head": 64}, 64)]
)
def test_the_width_of_a_head_is_given_or_follows_from_the_model(values, width):
    assert validate(ModelConfig, values, "here").head_width == width


def test_a_given_head_width_frees_heads_from_dividing_the_model():
    assert validate(ModelConfig, {"d_model": 256, "heads": 3, "d_head": 10}, "here").head_width == 10


def test_files_are_not_named_in_vain():
    with pytest.raises(UserError, match=r"data\.train, dev and test name files, but data\.dataset is 'sample', not"):
        validate(Recipe, {"data": {"dataset": "sample", "train": ["a.tsv"]}}, "recipe")
