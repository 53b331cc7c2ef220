"""Files in, translated, and kept for a while."""

import os
import time

import pytest
from fastapi.testclient import TestClient

from seq2seq.service.app import create_app
from seq2seq.service.refusal import Refusal
from seq2seq.service.shelf import Shelf


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
