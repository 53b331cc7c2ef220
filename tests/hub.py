"""A hub of our own on localhost: what the Hugging Face client asks of the real one to push and fetch a model."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_a_token_that_may_write"
Files = dict[str, bytes]


@dataclass
class Hub:
    """Models with their commits, newest last; what was asked; and how a request for a model is refused, if it is."""

    url: str = ""
    commits: dict[str, list[tuple[str, Files]]] = field(default_factory=dict)
    private: dict[str, bool] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    large: Files = field(default_factory=dict)  # by SHA-256, as LFS has it
    requests: list[str] = field(default_factory=list)
    refusal: tuple[int, str] | None = None  # status, X-Error-Code

    def commit(self, model: str, files: Files) -> str:
        """Add a commit and return its id."""
        number = len(self.commits.setdefault(model, []))
        oid = hashlib.sha1(f"{model} {number}".encode()).hexdigest()
        self.commits[model].append((oid, files))
        return oid

    def files(self, model: str, revision: str = "main") -> tuple[str, Files] | None:
        """The commit that a revision names."""
        if revision == "main" and self.commits.get(model):
            return self.commits[model][-1]
        return next((commit for commit in self.commits.get(model, []) if commit[0] == revision), None)


class Handler(BaseHTTPRequestHandler):
    """One request. Addresses are those of huggingface.co."""

    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        """Keep the test's output clean."""

    def answer(self, body: Any = None, status: int = 200, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def refused(self) -> bool:
        self.hub.requests.append(f"{self.command} {self.path}")
        if self.hub.refusal:
            status, code = self.hub.refusal
            self.answer({"error": code}, status, X_Error_Code=code)
        return self.hub.refusal is not None

    def do_POST(self) -> None:
        data = self.body()
        if self.refused():
            return
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer({"error": "Invalid credentials"}, 401, X_Error_Message="Invalid username or password.")
        elif self.path == "/api/repos/create":
            self.create(json.loads(data))
        elif self.path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            modes = [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if file["path"].endswith(".safetensors") else "regular",
                    "shouldIgnore": False,
                }
                for file in json.loads(data)["files"]
            ]
            self.answer({"files": modes})
        elif self.path.endswith(".git/info/lfs/objects/batch"):
            objects = [
                item | {"actions": {"upload": {"href": f"{self.hub.url}/lfs/{item['oid']}"}}}
                for item in json.loads(data)["objects"]
            ]
            self.answer({"transfer": "basic", "objects": objects})
        else:
            self.take_commit([json.loads(line) for line in data.splitlines()])

    def create(self, wanted: dict[str, Any]) -> None:
        name = f"{wanted['organization']}/{wanted['name']}"
        if name in self.hub.commits:
            self.answer({"error": "You already created this model repo", "url": f"{self.hub.url}/{name}"}, 409)
            return
        self.hub.commit(name, {".gitattributes": b"*.safetensors filter=lfs\n"})
        self.hub.private[name] = wanted.get("visibility") == "private" or bool(wanted.get("private"))
        self.answer({"url": f"{self.hub.url}/{name}"})

    def take_commit(self, lines: list[dict[str, Any]]) -> None:
        model = self.path.removeprefix("/api/models/").split("/commit/")[0]
        files = dict(self.hub.commits[model][-1][1])
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                self.hub.messages.append(value["summary"])
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.hub.large[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        oid = self.hub.commit(model, files)
        self.answer({"commitUrl": f"{self.hub.url}/{model}/commit/{oid}", "commitOid": oid})

    def do_PUT(self) -> None:
        data = self.body()
        oid = hashlib.sha256(data).hexdigest()
        self.hub.requests.append(f"PUT {self.path}")
        self.hub.large[oid] = data
        self.answer({}, 200 if self.path == f"/lfs/{oid}" else 400)

    def do_GET(self) -> None:
        if self.refused():
            return
        path = self.path.split("?")[0]
        model = "/".join(path.removeprefix("/api/models").split("/")[1:3])
        rest = path.split(model, 1)[1].split("/")
        revision = rest[2] if len(rest) > 2 else "main"
        found = self.hub.files(model, revision)
        if found is None:
            self.answer({}, 404, X_Error_Code="RevisionNotFound" if model in self.hub.commits else "RepoNotFound")
        elif rest[1:2] == ["resolve"]:
            self.give(found, "/".join(rest[3:]))
        elif rest[1:2] == ["tree"]:
            self.answer([entry(name, content) for name, content in found[1].items()])
        else:
            self.answer({"id": model, "sha": found[0], "siblings": [{"rfilename": name} for name in found[1]]})

    def do_HEAD(self) -> None:
        self.do_GET()

    def give(self, commit: tuple[str, Files], name: str) -> None:
        oid, files = commit
        self.answer(files[name], ETag=f'"{blob_id(files[name])}"', X_Repo_Commit=oid)


def blob_id(content: bytes) -> str:
    """The id that git gives a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def entry(name: str, content: bytes) -> dict[str, Any]:
    """A file as the hub lists it."""
    return {"type": "file", "path": name, "size": len(content), "oid": blob_id(content)}


@contextmanager
def running_hub() -> Iterator[Hub]:
    """A hub that answers until the block ends."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
