"""Inputs that broke other translators, at every door: command line, HTTP, demo. (Python: test_cases.py.)"""

import json

import pytest
from cases import Made, Part, parameters, unmet

from seq2seq import Translator
from seq2seq.cli import main
from seq2seq.demo.translate_tab import translate_text
from seq2seq.errors import UserError


def made(text: str, answers: list[dict]) -> Made:
    parts = [Part(part["source"], part["translation"]) for answer in answers for part in answer["sentences"]]
    return Made(text, parts, any(answer["truncated"] for answer in answers))


@pytest.mark.parametrize("case", parameters("text", "html"))
def test_on_the_command_line(translator, monkeypatch, capsys, case):
    if "\r" in case["text"] and case["format"] == "text":
        pytest.skip("the command line's lines end in LF alone")
    monkeypatch.setattr(Translator, "from_pretrained", lambda *options, **named: translator)
    assert main(["translate", "--json", "--format", case["format"], "--", case["text"]]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]]
    result = made("\n".join(answer["translation"] for answer in answers), answers)
    assert unmet(case["expect"], case["text"], result) == [], result.text[:300]


@pytest.mark.parametrize("case", parameters("text"))
def test_over_http(client, case):
    answer = client.post("/v1/translate", json={"text": case["text"]})
    if 400 <= answer.status_code < 500 and "no_silent_cut_or_4xx" in case["expect"]:
        return
    assert answer.status_code == 200
    result = made(answer.json()["translation"], [answer.json()])
    assert unmet(case["expect"], case["text"], result) == [], result.text[:300]


@pytest.mark.parametrize("case", parameters("html"))
def test_a_page_over_http(client, translator, case):
    body = {"q": case["text"], "source": "en", "target": "fr", "format": "html"}
    text = client.post("/translate", json=body).json()["translatedText"]
    assert text == translator.translate(case["text"], format="html").text


@pytest.mark.parametrize("case", parameters("json-escape"))
def test_escapes_over_http(client, case):
    body = f'{{"q": "{case["text"]}", "source": "en", "target": "fr"}}'
    answer = client.post("/translate", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 400)
    assert set(answer.json()) <= {"translatedText", "error"}


@pytest.mark.parametrize("case", parameters("text"))
def test_in_the_demo(translator, case):
    try:
        result = translate_text(translator, case["text"], 5, 1)
    except UserError:
        assert "no_silent_cut_or_4xx" in case["expect"] or "no_silent_cut" in case["expect"]
        return
    assert unmet(case["expect"], case["text"], result) == [], result.text[:300]
