"""A small hub on the loopback interface that speaks the protocol of the Hugging Face hub, and fails as networks do."""

import base64
import contextlib
import hashlib
import json
import os
import re
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import yaml

# Some of those that the hub knows.
LICENSES = {"apache-2.0", "cc-by-nc-4.0", "mit", "mpl-2.0", "other"}


def _listed(value):
    return value if isinstance(value, list) else [value] if value else []


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub(ThreadingHTTPServer):
    """Repositories by name; each is a dict of contents by path, all of one commit.

    Attributes:
        cuts: how many downloads of each path end after half of what was left.
        damaged: paths of files that arrive with another last byte.
        gated: names of repositories that only some people may read.
        ranges: (path, range) of each request for a file's content.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories, self.cuts, self.damaged, self.ranges, self.gated = {}, Counter(), set(), [], set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def commit(self, name):
        """The id of the only commit: a hash of the contents."""
        files = sorted(self.repositories[name].items())
        return hashlib.sha1(repr([(path, git_hash(content)) for path, content in files]).encode()).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = unquote(urlsplit(self.path).path).strip("/").split("/")
        if path[:2] == ["api", "models"]:
            name, rest = "/".join(path[2:4]), path[4:]
            if not self.known(name, rest[1] if rest else "main"):
                return
            if rest[:1] == ["tree"]:
                self.answer([self.entry(*file) for file in self.server.repositories[name].items()])
            else:
                siblings = [{"rfilename": path} for path in self.server.repositories[name]]
                self.answer({"id": name, "sha": self.server.commit(name), "siblings": siblings})
        else:  # OWNER/NAME/resolve/REVISION/PATH
            name, revision, file = "/".join(path[:2]), path[3], "/".join(path[4:])
            if self.known(name, revision):
                self.send_file(name, file)

    do_HEAD = do_GET  # noqa: N815

    def known(self, name, revision):
        if name not in self.server.repositories:
            self.answer({"error": "Repository not found"}, 401, {"X-Error-Code": "RepoNotFound"})
        elif name in self.server.gated:
            self.answer({"error": "Access is restricted"}, 403, {"X-Error-Code": "GatedRepo"})
        elif revision not in ("main", "v1", self.server.commit(name)):
            self.answer({"error": "Invalid rev id"}, 404, {"X-Error-Code": "RevisionNotFound"})
        else:
            return True
        return False

    @staticmethod
    def entry(path, content):
        """What the hub says about a file: large ones have a SHA-256, others the hash of Git."""
        facts = {"type": "file", "path": path, "size": len(content), "oid": git_hash(content)}
        if len(content) > 100_000:
            facts["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 100}
        return facts

    def send_file(self, name, file):
        content = self.server.repositories[name].get(file)
        if content is None:
            return self.answer({"error": "Entry not found"}, 404, {"X-Error-Code": "EntryNotFound"})
        facts = self.entry(file, content)
        etag = facts.get("lfs", facts)["oid"]
        begin = 0
        if self.command == "GET":
            self.server.ranges.append((file, self.headers.get("Range")))
            if requested := self.headers.get("Range"):
                begin = int(requested.removeprefix("bytes=").split("-")[0])
        self.send_response(206 if begin else 200)
        self.send_header("X-Repo-Commit", self.server.commit(name))
        self.send_header("ETag", f'"{etag}"')
        self.send_header("Accept-Ranges", "bytes")
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        if self.command == "HEAD":
            return None
        if file in self.server.damaged:
            content = content[:-1] + bytes([content[-1] ^ 1])
        content = content[begin:]
        if self.server.cuts[file]:
            self.server.cuts[file] -= 1
            self.close_connection = True
            content = content[: len(content) // 2]
        self.wfile.write(content)
        return None

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = unquote(urlsplit(self.path).path).strip("/").split("/")
        if path == ["api", "validate-yaml"]:  # Of a README, before it is uploaded.
            facts = yaml.safe_load(json.loads(body)["content"].split("---")[1])
            wrong = [x for x in _listed(facts.get("license")) if x not in LICENSES]
            wrong += [x for x in _listed(facts.get("language")) if not re.fullmatch("[a-z]{2,3}", x)]
            errors = [{"message": f"not known: {x}"} for x in wrong]
            self.answer({"errors": errors, "warnings": []}, 400 if errors else 200)
        elif path == ["api", "repos", "create"]:
            request = json.loads(body)
            name = f"{request['organization']}/{request['name']}"
            self.server.repositories.setdefault(name, {})
            self.answer({"url": f"{self.server.url}/{name}"})
        elif path[4] == "preupload":
            files = [file["path"] for file in json.loads(body)["files"]]
            self.answer({"files": [{"path": file, "uploadMode": "regular", "shouldIgnore": False} for file in files]})
        else:
            name = "/".join(path[2:4])
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.server.repositories[name][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            commit = self.server.commit(name)
            self.answer({"commitUrl": f"{self.server.url}/{name}/commit/{commit}", "commitOid": commit})

    def answer(self, content, status=200, headers=()):
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **dict(headers),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextlib.contextmanager
def running():
    """A `Hub` that answers until the block ends."""
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()


def environment(url, cache):
    """The environment of a process that uses this hub alone, with a token for uploads."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return {**others, "HF_ENDPOINT": url, "HF_HOME": str(cache), "HF_TOKEN": "hf_x", "NO_PROXY": "127.0.0.1"}


def use(monkeypatch, url, cache):
    """What `HF_ENDPOINT` and `HF_HUB_CACHE` set, which huggingface_hub reads when it is imported."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
