"""A loopback server that can drop connections, and a clean environment for every test."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mxopt.data import download, registry


class Server:
    """Serves ``files`` (path to bytes) on loopback; drops the first ``drops`` answers half-way."""

    def __init__(self):
        self.files, self.drops, self.requests = {}, 0, []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self):
                self.answer(with_body=False)

            def do_GET(self):
                self.answer(with_body=True)

            def answer(self, with_body):
                outer.requests.append((self.command, self.path))
                content = outer.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if not with_body:
                    return
                if outer.drops > 0:
                    outer.drops -= 1
                    self.wfile.write(content[: len(content) // 2])
                    self.close_connection = True
                else:
                    self.wfile.write(content)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch):
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def clean(monkeypatch, tmp_path):
    """No folder of the user's, an empty cache, nothing remembered; returns the cache's path."""
    monkeypatch.delenv("MXOPT_DATA", raising=False)
    monkeypatch.delenv("MXOPT_WEIGHTS", raising=False)
    cache = tmp_path / "cache"
    monkeypatch.setenv("MXOPT_CACHE", str(cache))
    monkeypatch.setattr(download, "_unreachable_since", {})
    return cache


@pytest.fixture
def register(monkeypatch):
    def add(source):
        monkeypatch.setitem(registry.SOURCES, source.name, source)
        return source

    return add
