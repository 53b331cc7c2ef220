"""The service as clients of LibreTranslate meet it, and what is around every answer."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from seq2seq.config import validate
from seq2seq.service.settings import ServiceConfig

ROOT = Path(__file__).parents[1]
TEXT = "The old man is reading a book. It is late."


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


@pytest.mark.parametrize("target", ["fr", "FR", "fr-FR"])
def test_a_language_is_the_same_however_it_is_written(client, target):
    french = "Où se trouve la gare, s'il vous plaît ?"
    answer = client.post("/translate", json={"q": french, "source": "auto", "target": target}).json()
    assert (answer["detectedLanguage"]["language"], answer["translatedText"]) == ("fr", french)
    same = client.post("/translate", json={"q": french, "source": "FR", "target": target})
    assert (same.status_code, same.json()) == (200, {"translatedText": french})


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


# Around the answers.


def test_probes_may_ask_for_the_head_alone(client):
    for path in ("/livez", "/readyz"):
        answer = client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")
    assert [client.head("/languages").status_code, client.options("/translate").status_code] == [405, 405]


def test_every_answer_has_the_headers_that_bind_the_browser(client):
    preflight = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    answers = [client.get(path) for path in ("/livez", "/nothing", "/docs")]
    for headers in (answer.headers for answer in [*answers, client.options("/translate", headers=preflight)]):
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
