"""A stand-in for the Hugging Face Hub on this machine: enough of its protocol to push and fetch files."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_only_for_tests"


class LocalHub(ThreadingHTTPServer):
    """Repositories by name, each a dictionary of files; `asked` are the requests so far."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repos: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Answers as the Hub does, as far as huggingface_hub looks."""

    server: LocalHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *words: Any) -> None:
        """Says nothing."""

    def answer(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer_json(self, value: Any, code: int = 200) -> None:
        self.answer(code, json.dumps(value).encode(), Content_Type="application/json")

    def body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        owner, name, _, revision, *rest = [*self.path.strip("/").split("/"), "", "", "", ""]
        file = rest[0]
        files = self.server.repos.get(f"{owner}/{name}")
        if files is None:
            self.answer(401, X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")
        elif revision not in ("main", COMMIT):
            self.answer(404, X_Error_Code="RevisionNotFound", X_Error_Message="Invalid rev id")
        elif file not in files:
            self.answer(404, X_Error_Code="EntryNotFound", X_Repo_Commit=COMMIT)
        else:
            tag = hashlib.sha1(files[file]).hexdigest()
            self.answer(200, files[file], ETag=f'"{tag}"', X_Repo_Commit=COMMIT)

    def do_POST(self) -> None:
        self.server.asked.append(f"POST {self.path}")
        body = self.body()
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.answer_json({"error": "Invalid username or password."}, 401)
        elif self.path == "/api/repos/create":
            asked = json.loads(body)
            repo = f"{asked.get('organization', 'me')}/{asked['name']}"
            self.server.repos.setdefault(repo, {})
            self.server.private[repo] = asked.get("private", asked.get("visibility") == "private")
            self.answer_json({"url": f"{self.server.address}/{repo}", "name": repo})
        elif self.path == "/api/validate-yaml":
            self.answer_json({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            names = [file["path"] for file in json.loads(body)["files"]]
            kind = {"uploadMode": "regular", "shouldIgnore": False}
            self.answer_json({"files": [{"path": name} | kind for name in names]})
        elif "/commit/" in self.path:
            owner, name = self.path.split("/")[3:5]
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    content = base64.b64decode(line["value"]["content"])
                    self.server.repos[f"{owner}/{name}"][line["value"]["path"]] = content
            url = f"{self.server.address}/{owner}/{name}/commit/{COMMIT}"
            self.answer_json({"success": True, "commitOid": COMMIT, "commitUrl": url, "hookOutput": ""})
        else:
            self.answer_json({"error": f"unknown {self.path}"}, 404)


@pytest.fixture
def hub(monkeypatch, tmp_path_factory) -> Iterator[LocalHub]:
    """The Hub is this machine, its cache is empty, and nobody is logged in."""
    import huggingface_hub
    from huggingface_hub import constants

    if huggingface_hub.__version__.startswith("0."):
        pytest.skip("before 1.0 the Hub's address was fixed when huggingface_hub was imported")
    server = LocalHub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = tmp_path_factory.mktemp("hub")
    for name, value in {
        "ENDPOINT": server.address,
        "HUGGINGFACE_CO_URL_TEMPLATE": server.address + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(home / "cache"),
        "HF_TOKEN_PATH": str(home / "token"),
        "HF_STORED_TOKENS_PATH": str(home / "tokens"),
    }.items():
        monkeypatch.setattr(constants, name, value)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    yield server
    server.shutdown()
    server.server_close()
