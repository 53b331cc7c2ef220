"""The service as clients meet it: LibreTranslate's API, our own, limits, keys, refusals."""

import asyncio
import json
import os
import re
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from seq2seq import Translator
from seq2seq.config import validate
from seq2seq.errors import UserError
from seq2seq.service.app import create_app
from seq2seq.service.batcher import Batcher
from seq2seq.service.refusal import Refusal
from seq2seq.service.settings import ServiceConfig
from seq2seq.service.shelf import Shelf

ROOT = Path(__file__).parents[1]
MULTIPART = "multipart/form-data; boundary=y; charset="
TEXT = "The old man is reading a book. It is late."


def part(value: bytes) -> bytes:
    """A form of one field."""
    return b'--y\r\nContent-Disposition: form-data; name="q"\r\n\r\n' + value + b"\r\n--y--"


@pytest.fixture(scope="module")
def app(translator: Translator) -> FastAPI:
    return create_app([translator])


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def limited(translator: Translator):
    """A client of a service with other settings."""
    open_clients = []

    def make(**settings) -> TestClient:
        client = TestClient(create_app([translator], ServiceConfig(**settings)), raise_server_exceptions=False)
        open_clients.append(client.__enter__())
        return client

    yield make
    for client in open_clients:
        client.__exit__(None, None, None)


# LibreTranslate.


@pytest.mark.parametrize("form", ["json", "data"])
def test_a_text_is_translated_as_the_translator_does(client, translator, form):
    answer = client.post("/translate", **{form: {"q": TEXT, "source": "en", "target": "fr"}})
    assert answer.status_code == 200
    assert answer.json() == {"translatedText": translator.translate(TEXT, attention=False).text}


def test_a_list_comes_back_as_a_list_in_order(client, translator):
    texts = ["One cat.", "", "Two dogs.\n\nA bird.", "42", "One cat."]
    answer = client.post("/translate", json={"q": texts, "source": "en", "target": "fr"}).json()
    assert answer == {"translatedText": [result.text for result in translator.translate(texts, attention=False)]}


def test_a_form_may_hold_what_curl_does_not_escape(client, translator):
    form = "q=Zoé drinks a café crème.&source=en&target=fr".encode()
    answer = client.post("/translate", content=form, headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.json() == {"translatedText": translator.translate("Zoé drinks a café crème.", attention=False).text}


def test_a_byte_order_mark_is_no_part_of_a_body(client):
    content = b'\xef\xbb\xbf{"q": "42", "source": "en", "target": "fr"}'
    answer = client.post("/translate", content=content, headers={"content-type": "application/json"})
    assert answer.json() == {"translatedText": "42"}


def test_the_address_may_ask_and_null_is_the_same_as_nothing(client, translator):
    expected = {"translatedText": translator.translate("A cat.", attention=False).text}
    assert client.post("/translate", params={"q": "A cat.", "source": "en", "target": "fr"}).json() == expected
    body = {"q": "A cat.", "source": "en", "target": "fr", "format": None, "alternatives": None, "api_key": None}
    assert client.post("/translate", json=body | {"unknown": 1}).json() == expected


def test_a_text_into_its_own_language_stays(client):
    assert client.post("/translate", json={"q": "A cat.", "source": "en", "target": "en"}).json() == {
        "translatedText": "A cat."
    }


def test_a_page_is_detected_by_what_it_says_and_translated_with_its_tags(client, translator):
    page = '<div class="the and of is are"><p>Où se trouve la <b>gare</b>, s\'il vous plaît ?</p></div>'
    answer = client.post("/translate", json={"q": page, "source": "auto", "target": "fr", "format": "html"}).json()
    assert (answer["detectedLanguage"]["language"], answer["translatedText"]) == ("fr", page)
    page = "<p>The <b>red</b> house.</p>"
    answer = client.post(
        "/translate", json={"q": page, "source": "en", "target": "fr", "format": "html", "alternatives": 2}
    )
    assert answer.json() == {"translatedText": translator.translate(page, format="html").text, "alternatives": []}


def test_alternatives_are_further_translations(client, translator):
    answer = client.post("/translate", json={"q": "Good morning!", "source": "en", "target": "fr", "alternatives": 3})
    best = translator.translate("Good morning!", n_best=4, attention=False).best(4)
    assert answer.json() == {"translatedText": best[0].text, "alternatives": [option.text for option in best[1:]]}


def test_the_language_is_detected_and_a_text_in_the_target_language_stays(client):
    texts = ["Where is the station, please?", "Où se trouve la gare, s'il vous plaît ?"]
    detected = client.post("/translate", json={"q": texts, "source": "auto", "target": "fr"}).json()
    assert [each["language"] for each in detected["detectedLanguage"]] == ["en", "fr"]
    assert detected["translatedText"][1] == texts[1]
    one = client.post("/translate", json={"q": texts[0], "source": "auto", "target": "fr"}).json()
    assert set(one) == {"translatedText", "detectedLanguage"}


def test_detect_ranks_the_languages_of_the_service(client):
    found = client.post("/detect", data={"q": "Où se trouve la gare, s'il vous plaît ?"}).json()
    assert found[0]["language"] == "fr"
    assert found[0]["confidence"] > 90
    assert {each["language"] for each in found} == {"en", "fr"}
    assert client.post("/detect", json={"q": "42 !"}).json() == [{"confidence": 0.0, "language": "en"}]


def test_half_a_surrogate_pair_is_answered(client):
    body = b'{"q": ["\\ud800 A cat.", "42"], "source": "en", "target": "en"}'
    answer = client.post("/translate", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 400)
    answer = client.post("/v1/translate", json={"text": "A cat.", "glossary": {"\nx\x07" * 200: "y"}})
    assert answer.status_code == 400
    assert "\n" not in answer.json()["error"]
    assert len(answer.json()["error"]) < 300


def test_what_the_service_says_of_itself(client):
    assert client.get("/languages").json()[0] == {"code": "en", "name": "English", "targets": ["en", "fr"]}
    assert client.get("/health").json() == {"status": "ok"}
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == ServiceConfig().max_characters
    assert settings["keyRequired"] is False
    assert settings["supportedFilesFormat"] == []
    assert client.get("/livez").json() == client.get("/readyz").json() == {"status": "ok"}


# Our own.


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
        time.sleep(0.2)
        return real(self, sentences, search)

    real = Translator.translate_sentences
    monkeypatch.setattr(Translator, "translate_sentences", slow)
    client = limited(deadline=0.5, batch_sentences=1)
    answer = client.post("/v1/translate", json={"text": "One cat. " * 3 + "A dog. A bird. A cow.", "stream": True})
    assert answer.status_code == 200
    assert "event: error" in answer.text
    assert "not done within 0.5 s" in answer.text


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


# Files.


@pytest.mark.parametrize(
    ("name", "content"),
    [("page.HTML", "<p>The <b>red</b> house.</p>\r\n"), ("../../note.txt", "The cat sleeps.\r\n\r\nThe dog runs.\n")],
)
def test_a_file_is_translated_and_fetched(translator, tmp_path, name, content):
    format = "html" if "HTML" in name else "text"
    with TestClient(create_app([translator], folder=tmp_path)) as client:
        form = {"source": "en", "target": "fr"}
        answer = client.post("/translate_file", data=form, files={"file": (name, content.encode())})
        url = answer.json()["translatedFileUrl"]
        fetched = client.get(url)
        assert client.get("/frontend/settings").json()["supportedFilesFormat"] == [".txt", ".html"]
    assert fetched.content.decode() == translator.translate(content, format=format, attention=False).text
    assert fetched.headers["content-disposition"].startswith("attachment")
    assert [path.parent for path in tmp_path.rglob("*")] == [tmp_path]


@pytest.mark.parametrize(
    ("form", "file", "message"),
    [
        ({"target": "fr"}, None, "file is missing: send it as multipart/form-data"),
        ({}, ("a.txt", b"x"), "target is missing"),
        ({"target": "fr"}, ("a.docx", b"x"), "a file's name ends in '.docx', not in .txt or .html"),
        ({"target": "fr"}, ("a.txt", b"\xff"), "the file is not UTF-8"),
        ({"target": "fr", "file": "a text"}, None, "file is missing: send it as multipart/form-data"),
    ],
)
def test_a_file_that_cannot_be_taken_is_refused(translator, tmp_path, form, file, message):
    with TestClient(create_app([translator], folder=tmp_path)) as client:
        answer = client.post("/translate_file", data=form, files={"file": file} if file else {"other": b""})
        assert (answer.status_code, answer.json()) == (400, {"error": message})
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["0" * 32 + ".txt", "..%2Fsecret.txt", "secret.txt", "%00.txt"])
def test_no_other_file_is_fetched(translator, tmp_path, name):
    (tmp_path / "kept").mkdir()
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (tmp_path / "kept/secret.txt").write_text("secret", encoding="utf-8")
    with TestClient(create_app([translator], folder=tmp_path / "kept")) as client:
        assert client.get(f"/download_file/{name}").status_code == 404


def test_a_file_is_kept_for_some_minutes(tmp_path):
    shelf = Shelf(tmp_path)
    name = shelf.put("text", ".txt")
    assert shelf.find(name).read_text(encoding="utf-8") == "text"
    old = time.time() - 11 * 60
    os.utime(tmp_path / name, (old, old))
    with pytest.raises(Refusal, match="no longer"):
        shelf.find(name)
    assert not list(tmp_path.iterdir())


def test_no_file_is_taken_unless_the_service_says_so(client):
    answer = client.post("/translate_file", data={"target": "fr"}, files={"file": ("a.txt", b"x")})
    assert (answer.status_code, answer.json()) == (403, {"error": "this service takes no files"})


# What is refused.


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"source": "en", "target": "fr"}, "q is missing"),
        ({"q": "x", "source": "en"}, "target is missing"),
        ({"q": 5, "source": "en", "target": "fr"}, "q: neither a text nor a list of texts"),
        ({"q": ["x", 5], "source": "en", "target": "fr"}, "q: neither a text nor a list of texts"),
        ({"q": ["x"] * 10_001, "source": "en", "target": "fr"}, "q: 10,001 texts are over the limit of 10,000"),
        ({"q": "x", "source": "de", "target": "fr"}, "source 'de' is not one of en"),
        ({"q": "x", "source": "en", "target": "de"}, "target 'de' is not one of fr from en"),
        ({"q": "x", "source": "en", "target": "fr", "format": "pdf"}, "format 'pdf' is not one of text"),
        ({"q": "x", "source": "en", "target": "fr", "alternatives": -1}, "alternatives: Input should be greater"),
    ],
)
def test_a_misfit_is_a_400_that_names_it(client, body, message):
    answer = client.post("/translate", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(message)


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[]", b'"x"', b"", b"null", b"[" * 100_000])
def test_what_is_no_object_of_json_is_a_400(client, content):
    answer = client.post("/translate", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize(
    ("content", "kind", "status", "message"),
    [
        (b"q=x", "text/plain", 415, "content type 'text/plain' is not application/json or a form"),
        (b"q=%ff&target=fr", "application/x-www-form-urlencoded", 400, "the form is not UTF-8"),
        (b"q=\xff&target=fr", "application/x-www-form-urlencoded", 400, "the form is not UTF-8"),
        (b"a=&" * 2000, "application/x-www-form-urlencoded", 400, "the form has more than 1,000 fields"),
        (b"--x", "multipart/form-data", 400, "the form cannot be read: send multipart/form-data in UTF-8"),
        (b"--x\r\n", "multipart/form-data; boundary=y", 400, "the form cannot be read: send multipart"),
        (part(b"a" * 900_000), MULTIPART + "punycode", 400, "the form cannot be read: send multipart"),
        (part(b"\xff"), MULTIPART + "unicode_escape", 400, "the form cannot be read: send multipart"),
        (part(b"\xff"), MULTIPART + "utf-8", 400, "target is missing"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(client, content, kind, status, message):
    answer = client.post("/translate", content=content, headers={"content-type": kind})
    assert answer.status_code == status
    assert answer.json()["error"].startswith(message)


def test_a_field_that_our_own_api_does_not_know_is_refused(client):
    answer = client.post("/v1/translate", json={"text": "A cat.", "beams": 5})
    assert (answer.status_code, answer.json()) == (400, {"error": "'beams' is not a field of this request"})


def test_other_paths_and_methods_are_refused_alike(client):
    assert client.get("/nothing").json() == {"error": "Not Found"}
    for answer in (client.get("/translate"), client.put("/v1/translate"), client.post("/languages")):
        assert (answer.status_code, answer.json()) == (405, {"error": "Method Not Allowed"})


@pytest.mark.parametrize(
    ("settings", "body", "message"),
    [
        ({"max_characters": 5}, {"q": "123456"}, "characters of a request: 6 is over the limit of 5"),
        ({"max_texts": 2}, {"q": ["a", "b", "c"]}, "texts of a request: 3 is over the limit of 2"),
        ({"max_sentences": 1}, {"q": TEXT}, "sentences of a request: 2 is over the limit of 1"),
        ({"max_alternatives": 1}, {"q": "a", "alternatives": 2}, "alternatives: 2 is over the limit of 1"),
        ({"max_body": 1000}, {"q": "a" * 2000}, "bytes of a request: over the limit of 1,000"),
    ],
)
def test_a_limit_is_a_413_that_names_it(limited, settings, body, message):
    answer = limited(**settings).post("/translate", json={"source": "en", "target": "fr", **body})
    assert (answer.status_code, answer.json()) == (413, {"error": message})


def test_a_body_that_does_not_say_its_length_is_limited_too(limited):
    chunks = (b"x" * 600 for _ in range(3))
    answer = limited(max_body=1000).post("/translate", content=chunks, headers={"content-type": "application/json"})
    assert answer.status_code == 413


def test_a_compressed_body_is_refused(client):
    answer = client.post("/translate", content=b"x", headers={"content-encoding": "gzip"})
    assert (answer.status_code, answer.json()) == (415, {"error": "send the body without Content-Encoding"})


def test_a_deadline_that_is_over_is_a_504(limited):
    answer = limited(deadline=1e-4).post("/translate", json={"q": TEXT, "source": "en", "target": "fr"})
    assert answer.status_code == 504
    assert "send less text at once" in answer.json()["error"]


def test_keys_are_asked_for_and_given_in_body_or_header(limited):
    client = limited(api_keys=["the-right-key", "the-other-key"])
    body = {"q": "a", "source": "en", "target": "fr"}
    assert client.post("/translate", json=body).json() == {"error": "api_key is missing"}
    assert client.post("/translate", json=body | {"api_key": "wrong"}).status_code == 403
    assert client.post("/translate", json=body | {"api_key": "the-other-key"}).status_code == 200
    assert client.post("/translate", data=body | {"api_key": "the-right-key"}).status_code == 200
    assert client.post("/translate", json=body, headers={"Authorization": "Bearer the-right-key"}).status_code == 200
    for door in ("/detect", "/v1/translate", "/v1/attention"):
        assert client.post(door, json={"q": "a"} if door == "/detect" else {"text": "a"}).status_code == 403
    assert client.get("/livez").status_code == 200


def test_wrong_keys_cannot_be_tried_for_ever(limited):
    client = limited(api_keys=["the-right-key"])
    body = {"q": "42", "source": "en", "target": "fr"}
    statuses = [client.post("/translate", json=body | {"api_key": f"wrong{n}"}).status_code for n in range(21)]
    assert statuses == [403] * 20 + [429]
    assert client.post("/translate", json=body | {"api_key": "the-right-key"}).status_code == 429


def test_too_many_requests_are_a_429_that_says_when(limited):
    client = limited(requests_per_minute=2)
    body = {"q": "42", "source": "en", "target": "fr"}
    assert [client.post("/translate", json=body).status_code for _ in range(3)] == [200, 200, 429]
    refused = client.post("/translate", json=body)
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.json()["error"].startswith("more than 2 requests a minute: try again in")


def test_a_body_that_does_not_arrive_is_a_408(limited):
    app = limited(body_seconds=0.05).app

    async def ask() -> list[dict]:
        sent = []

        async def receive() -> dict:
            await asyncio.sleep(5)
            return {"type": "http.disconnect"}

        async def send(message: dict) -> None:
            sent.append(message)

        headers = [(b"content-type", b"application/json"), (b"content-length", b"10")]
        scope = {"type": "http", "method": "POST", "path": "/translate", "headers": headers, "query_string": b""}
        await app(scope, receive, send)
        return sent

    assert asyncio.run(ask())[0]["status"] == 408


def test_a_full_queue_is_a_503_that_says_when(limited, monkeypatch):
    client = limited()
    monkeypatch.setattr(Batcher, "waiting", 2_000)
    answer = client.post("/translate", json={"q": TEXT, "source": "en", "target": "fr"})
    assert (answer.status_code, answer.json()) == (503, {"error": "the service is busy: try again in 100 s"})
    assert answer.headers["retry-after"] == "100"
    assert client.get("/readyz").status_code == 503


def test_a_model_that_fails_is_not_ready(limited, monkeypatch):
    def fail(self, sentences, search):
        raise RuntimeError

    client = limited()
    monkeypatch.setattr(Translator, "translate_sentences", fail)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})


def test_a_failure_tells_nothing_of_itself(limited, monkeypatch, caplog):
    client = limited()

    def fail(self, text, format):
        raise RuntimeError(f"a secret and {text}")

    monkeypatch.setattr(Translator, "plan", fail)
    answer = client.post("/translate", json={"q": "my text", "source": "en", "target": "fr"})
    assert (answer.status_code, answer.json()) == (500, {"error": "the service failed; the fault is noted"})
    assert "RuntimeError at" in caplog.text
    assert "secret" not in caplog.text
    assert "my text" not in caplog.text


# Around the answers.


def test_every_answer_has_the_headers_that_bind_the_browser(client):
    for path in ("/livez", "/nothing", "/docs"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_other_origins_may_not_ask_unless_they_are_named(client, limited):
    asked = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in client.options("/translate", headers=asked).headers
    named = limited(allow_origins=["https://example.org"]).options("/translate", headers=asked)
    assert named.headers["access-control-allow-origin"] == "https://example.org"
    asked |= {"Access-Control-Request-Headers": "authorization,content-type"}
    assert limited(allow_origins=["https://example.org"]).options("/translate", headers=asked).status_code == 200
    refused = limited(allow_origins=["https://example.org"], max_body=1000)
    too_large = refused.post("/translate", content=b"x" * 2000, headers={"Origin": "https://example.org"})
    assert (too_large.status_code, too_large.headers["access-control-allow-origin"]) == (413, "https://example.org")


def test_metrics_count_what_was_done_and_hold_no_text(limited):
    client = limited()
    client.post("/translate", json={"q": "A verysecretword here.", "source": "en", "target": "fr"})
    client.get("/secretpath")
    text = client.get("/metrics").text
    assert "secret" not in text
    samples = {
        (sample.name, sample.labels.get("door"), sample.labels.get("status")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["seq2seq_request_seconds_count", "/translate", "200"] == 1
    assert samples["seq2seq_request_seconds_count", "other", "404"] == 1
    assert samples["seq2seq_batch_sentences_count", None, None] == 1
    assert samples["seq2seq_characters_total", None, None] == len("A verysecretword here.")
    assert samples["seq2seq_tokens_total", None, None] > 0
    assert samples["seq2seq_queue_sentences", None, None] == 0


def test_the_documentation_needs_no_net(client):
    page = client.get("/docs").text
    assert "https://" not in page
    for script in re.findall(r'(?:src|href)="(/[^"]+)"', page):
        assert client.get(script).status_code == 200
    paths = client.get("/openapi.json").json()["paths"]
    for path in ("/translate", "/detect", "/translate_file", "/v1/translate", "/v1/attention"):
        assert paths[path]["post"]["responses"]["200"]["content"]["application/json"]["example"]
    assert {"/translate", "/detect", "/languages", "/v1/translate", "/v1/attention", "/metrics"} <= set(paths)


def test_the_docs_name_every_setting():
    [block] = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/service.md").read_text(encoding="utf-8"), re.DOTALL)
    lines = [f"{name} = {json.dumps(field.default)}" for name, field in ServiceConfig.model_fields.items()]
    notes = [field.description for field in ServiceConfig.model_fields.values()]
    width = max(map(len, lines))
    assert block == "".join(f"{line:{width}}  # {note}\n" for line, note in zip(lines, notes, strict=True))
    assert validate(ServiceConfig, tomllib.loads(block), "docs") == ServiceConfig()
