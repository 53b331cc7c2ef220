"""What the service refuses: the status, one line, and nothing of the inside."""

import asyncio

import pytest

from seq2seq import Translator
from seq2seq.service.batcher import Batcher

MULTIPART = "multipart/form-data; boundary=y; charset="
TEXT = "The old man is reading a book. It is late."


def part(value: bytes) -> bytes:
    """A form of one field."""
    return b'--y\r\nContent-Disposition: form-data; name="q"\r\n\r\n' + value + b"\r\n--y--"


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
        (
            {"max_beam": 2},
            {"q": "a", "alternatives": 2},
            "n_best, which needs as wide a beam: 3 is over the limit of 2",
        ),
        (
            {"max_sentences": 2},
            {"q": "<i title='One. Two. Six.'>", "format": "html"},
            "sentences of a request: 3 is over the limit of 2",
        ),
    ],
)
def test_a_limit_is_a_413_that_names_it(limited, settings, body, message):
    answer = limited(**settings).post("/translate", json={"source": "en", "target": "fr", **body})
    assert (answer.status_code, answer.json()) == (413, {"error": message})


def test_the_widest_beam_holds_for_the_models_own_too(limited, translator):
    answer = limited(max_beam=1).post("/translate", json={"q": TEXT, "source": "en", "target": "fr"})
    assert answer.json()["translatedText"] == translator.translate(TEXT, beam_size=1, attention=False).text


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


def test_with_keys_requests_are_counted_by_key_and_those_without_by_address(limited):
    client = limited(requests_per_minute=2, api_keys=["the-first-key", "the-second-key"])
    body = {"q": "42", "source": "en", "target": "fr"}
    for key in ("the-first-key", "the-second-key"):
        assert [client.post("/translate", json=body | {"api_key": key}).status_code for _ in range(3)] == [
            200,
            200,
            429,
        ]
    assert [client.post("/translate", json=body).status_code for _ in range(3)] == [403, 403, 429]


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
