"""Our own API: scores, alternatives, links, attention, streams, pages, glossaries."""

import asyncio
import json
import re
import time

import pytest
from fastapi.testclient import TestClient

from seq2seq import Translator
from seq2seq.errors import UserError
from seq2seq.service.app import create_app
from seq2seq.service.settings import ServiceConfig

TEXT = "The old man is reading a book. It is late."


def test_v1_gives_scores_alternatives_and_links(client, translator):
    answer = client.post("/v1/translate", json={"text": TEXT, "n_best": 2, "beam_size": 4}).json()
    result = translator.translate(TEXT, beam_size=4, n_best=2)
    assert answer["translation"] == result.text
    assert [sentence["source"] for sentence in answer["sentences"]] == ["The old man is reading a book.", "It is late."]
    for found, expected in zip(answer["sentences"], result.sentences, strict=True):
        assert found["score"] == pytest.approx(expected.score, abs=1e-5)
        assert [option["text"] for option in found["alternatives"]] == [a.text for a in expected.alternatives]
        links = [(link["source"], link["target"]) for link in found["alignment"]]
        assert links == [(link.source, link.target) for link in expected.alignment]


def test_the_described_answers_have_the_fields_of_real_ones(client):
    paths = client.get("/openapi.json").json()["paths"]
    for path in ("/v1/translate", "/v1/attention"):
        described = paths[path]["post"]["responses"]["200"]["content"]["application/json"]["example"]
        answer = client.post(path, json={"text": "Good morning!"}).json()
        assert described.keys() == answer.keys()
        for sentence in answer.get("sentences", []):
            assert described["sentences"][0].keys() == sentence.keys()


def test_v1_attention_is_that_of_the_translator(client, translator):
    answer = client.post("/v1/attention", json={"text": "The cat sleeps."}).json()
    sentence = translator.translate("The cat sleeps.").sentences[0]
    assert answer["source_tokens"] == sentence.source_tokens
    assert answer["weights"] == pytest.approx(sentence.attention, abs=1e-5)
    refused = client.post("/v1/attention", json={"text": TEXT})
    assert refused.json() == {"error": "attention is of one sentence, the text has 2 to translate"}


def test_v1_streams_a_text_part_by_part(client, translator):
    text = "The cat sleeps.\n\nThe dog runs. 42"
    events = []
    with client.stream("POST", "/v1/translate", json={"text": text, "stream": True}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for block in re.split(r"\r?\n\r?\n", "".join(answer.iter_text()).strip()):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            events.append((fields["event"], json.loads(fields["data"])))
    assert events[-1] == ("end", {})
    parts = [data["text"] if kind == "text" else data["translation"] for kind, data in events[:-1]]
    assert "".join(parts) == translator.translate(text, attention=False).text
    assert [kind for kind, _ in events].count("sentence") == 2


def test_a_refusal_of_a_stream_has_a_status(limited):
    answer = limited(max_sentences=1).post("/v1/translate", json={"text": TEXT, "stream": True})
    assert (answer.status_code, answer.json()) == (413, {"error": "sentences of a request: 2 is over the limit of 1"})


def test_a_stream_that_is_not_done_in_time_ends_with_an_error(limited, translator, monkeypatch):
    def slow(self, sentences, search):
        time.sleep(0.5)
        return real(self, sentences, search)

    real = Translator.translate_sentences
    monkeypatch.setattr(Translator, "translate_sentences", slow)
    client = limited(deadline=1.5, batch_sentences=1)
    answer = client.post("/v1/translate", json={"text": "One cat. " * 3 + "A dog. A bird. A cow.", "stream": True})
    assert answer.status_code == 200
    assert "event: error" in answer.text
    assert "not done within 1.5 s" in answer.text


def test_a_stream_that_nobody_reads_is_given_up(limited, caplog):
    app = limited(deadline=2).app
    body = json.dumps({"text": "One cat. A dog. A bird.", "stream": True}).encode()

    async def ask() -> int:
        sent, asked = [], asyncio.Event()

        async def receive():
            if not asked.is_set():
                asked.set()
                return {"type": "http.request", "body": body}
            return await asyncio.sleep(60)

        async def send(message):
            sent.append(message)
            if message["type"] == "http.response.body":
                await asyncio.sleep(60)  # the buffers are full

        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/v1/translate", "headers": headers, "query_string": b""}
        await asyncio.wait_for(app(scope, receive, send), 20)
        return len(sent)

    assert asyncio.run(ask()) >= 2
    assert caplog.text == ""


def test_attention_is_asked_for_few_texts_at_once(limited):
    answer = limited(max_maps=2).post("/v1/attention", json={"text": ["A cat."] * 3})
    assert answer.json() == {"error": "texts whose attention is asked: 3 is over the limit of 2"}


def test_our_own_api_takes_pages_glossaries_and_regions_of_a_language(client, translator):
    page = "<p>The <b>bank</b> is closed.</p>"
    body = {"text": page, "format": "html", "glossary": {"bank": "rive"}, "source": "EN", "target": "fr-FR"}
    answer = client.post("/v1/translate", json=body).json()
    assert answer["translation"] == translator.translate(page, format="html", glossary={"bank": "rive"}).text
    assert "rive</b>" in answer["translation"]
    assert answer["sentences"][0]["glossary"] == [{"source": "bank", "target": "rive", "kept": True}]
    refused = client.post("/v1/translate", json=body | {"stream": True})
    assert refused.json() == {"error": "stream takes one text, no list and no page"}
    refused = client.post("/v1/translate", json={"text": "A cat.", "n_best": 11})
    assert refused.json() == {"error": "n_best: 11 is over the limit of 6"}


def test_a_glossary_of_the_service_is_for_all_requests(limited, tmp_path):
    (tmp_path / "terms.tsv").write_text("bank\trive\ncat\tminou\n", encoding="utf-8")
    client = limited(glossary=str(tmp_path / "terms.tsv"))
    body = {"q": "The bank was crowded.", "source": "en", "target": "fr"}
    assert "rive" in client.post("/translate", json=body).json()["translatedText"]
    own = {"text": ["I see a cat.", "The bank is closed."], "glossary": {"bank": "berge"}}
    cat, bank = (answer["translation"] for answer in client.post("/v1/translate", json=own).json())
    assert ("minou" in cat, "berge" in bank) == (True, True)
    with pytest.raises(UserError, match=r"glossary missing.tsv does not exist"):
        limited(glossary="missing.tsv")


def test_of_several_directions_each_has_its_own_glossary(translator, tmp_path):
    (tmp_path / "terms.tsv").write_text("bank\trive\n", encoding="utf-8")
    models, file = [translator, Translator.from_pretrained("fr-en")], str(tmp_path / "terms.tsv")
    with pytest.raises(
        UserError, match=r'of which direction\? As a table: glossary = { en-fr = "FILE", fr-en = "FILE" }'
    ):
        create_app(models, ServiceConfig(glossary=file))
    with pytest.raises(UserError, match=r"glossary: 'en-de' is not one of the directions en-fr, fr-en"):
        create_app(models, ServiceConfig(glossary={"en-de": file}))
    with TestClient(create_app(models, ServiceConfig(glossary={"en-fr": file}))) as client:
        there = client.post("/v1/translate", json={"text": "The bank is closed."}).json()
        assert there["sentences"][0]["glossary"][0]["target"] == "rive"
        back = client.post("/v1/translate", json={"text": "La bank est fermée.", "source": "fr", "target": "en"}).json()
        assert back["sentences"][0]["glossary"] == []
