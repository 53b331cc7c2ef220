"""Imports point downward only, and a library is imported where its job is done."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "seq2seq"

# A module may import from its own part and from parts of a lower level.
LEVELS = {
    "errors": 0,
    "memory": 0,
    "storage": 1,
    "config": 1,
    "hub": 1,
    "folder": 2,
    "data": 2,
    "model": 2,
    "checkpoint": 3,
    "translation": 4,
    "bulk": 5,
    "evaluation": 5,
    "insight": 6,
    "training": 7,
    "benchmark": 8,
    "service": 8,
    "demo": 9,
    "commands": 10,
    "cli": 11,
    "scripts": 12,
}
LAZY = {"Translation": "translation", "Translator": "translation", "__version__": "errors"}
ONLY_IN = {
    "sentencepiece": {"seq2seq/data/tokenizer.py"},
    "datasets": {"seq2seq/data/corpus.py"},
    "lxml": {"seq2seq/data/tmx.py"},
    "sacrebleu": {"seq2seq/evaluation.py"},
    "sacremoses": {"seq2seq/evaluation.py"},
    "huggingface_hub": {"seq2seq/hub.py"},
    "ctranslate2": {"seq2seq/translation/ctranslate2_engine.py", "seq2seq/benchmark/by_hand.py"},
    "matplotlib": {"seq2seq/insight/figures.py"},
    "plotly": {"seq2seq/insight/figures.py"},
    "ray": {"scripts/translate_on_ray.py", "scripts/ray_serve.py"},
    "transformers": {"seq2seq/benchmark/marian.py"},
}
ONLY_UNDER = {
    "gradio": ("seq2seq/demo/",),
    "fastapi": ("seq2seq/service/", "seq2seq/demo/app.py"),  # which is mounted into it
    "uvicorn": ("seq2seq/service/",),
    "prometheus_client": ("seq2seq/service/",),
    "py3langid": ("seq2seq/service/",),
}
MODULES = [
    path
    for folder in ("seq2seq", "scripts", "demo")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path != PACKAGE / "__init__.py"  # hands out the translator when asked for it, which is its purpose
]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def part(path: Path) -> str:
    """The name in LEVELS that a file belongs to."""
    inside = path.relative_to(ROOT).parts
    return "scripts" if inside[0] != "seq2seq" else inside[1].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Dotted names of all modules that a file imports, inside functions too; what comes from them where it is ours."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)} imports relatively"
            own = node.module == "seq2seq"
            found |= {f"seq2seq.{LAZY.get(alias.name, alias.name)}" for alias in node.names} if own else {node.module}
    return found


def test_there_are_modules_and_each_has_its_level():
    assert len(MODULES) > 20
    assert {part(path) for path in MODULES} - {"__main__"} <= set(LEVELS)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_point_downward(path):
    own = part(path)
    parts = {module.split(".")[1] for module in imported(path) if module.startswith("seq2seq.")}
    above = {other for other in parts - {own} if LEVELS[other] >= LEVELS.get(own, 99)}
    assert above == set()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_library_is_imported_where_its_job_is_done_and_nowhere_else(path):
    for library in {module.split(".")[0] for module in imported(path)}:
        assert name(path) in ONLY_IN.get(library, {name(path)}), library
        assert name(path).startswith(ONLY_UNDER.get(library, "")), library


def test_the_model_needs_torch_and_nothing_else():
    allowed = set(sys.stdlib_module_names) | {"torch", "seq2seq"}
    for path in (PACKAGE / "model").glob("*.py"):
        assert {module.split(".")[0] for module in imported(path)} <= allowed


def test_importing_the_package_imports_nothing_heavy():
    code = "import seq2seq, sys; print(seq2seq.__version__, *sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"torch", "datasets", "gradio", "sacrebleu", "matplotlib", "plotly", "numpy", "pydantic", "sentencepiece"}
    assert "seq2seq" in output
    assert heavy & set(output) == set()


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    import seq2seq

    with pytest.raises(AttributeError, match="module 'seq2seq' has no attribute 'nothing'"):
        _ = seq2seq.nothing
