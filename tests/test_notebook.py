"""The notebook of the docs runs from its first cell to its last, and every view in it is shown."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from seq2seq import Translator
from seq2seq.insight.gallery import VIEWS, Exhibit, explore

NOTEBOOK = Path(__file__).parents[1] / "docs/attention.ipynb"


def run(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line, if that is an expression."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None


def test_the_notebook_runs(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Translator, "from_pretrained", lambda: translator)
    names: dict[str, Any] = {}
    shown = []
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        assert cell.get("outputs", []) == []  # what it shows is computed where it is run
        if cell["cell_type"] == "code":
            shown.append(run("".join(cell["source"]), names))
    exhibits = [value for value in shown if isinstance(value, Exhibit)]
    assert list(dict.fromkeys(exhibit.view for exhibit in exhibits)) == list(VIEWS)
    assert all("<figure" in exhibit._repr_html_() or "<details" in exhibit._repr_html_() for exhibit in exhibits)


def test_an_exhibit_reads_as_text_too(translator: Translator) -> None:
    assert "0.47" in str(explore(translator, "Hello.", "example"))
