"""Speaks the session API with the standard library, so that what is tested is the server and not a client library."""
import http.client
import json
import urllib.parse


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json()["code"]


def events_of(text):
    """Server-sent events as (type, id or None, data)."""
    out = []
    for block in text.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if "data" in fields:
            out.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return out


class Sessions:
    """The session API at `url`, as one caller."""

    def __init__(self, url, key=None):
        self.url = urllib.parse.urlparse(url)
        self.headers = {"OPEN-SANDBOX-API-KEY": key} if key else {}

    def connection(self, timeout=60):
        return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=timeout)

    def begin(self, method, path, body=None, headers=None, timeout=60):
        """The connection after the request was sent; the caller reads the answer, or hangs up."""
        sent = dict(self.headers)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        connection = self.connection(timeout)
        connection.request(method, self.url.path + path, body=body, headers=sent)
        return connection

    def request(self, method, path, body=None, headers=None, timeout=60):
        connection = self.begin(method, path, body, headers, timeout)
        try:
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def call(self, method, path, body=None, expect=200, **options):
        reply = self.request(method, path, body, **options)
        assert reply.status == expect, f"{method} {path}: {reply.status} {reply.body[:500]!r}"
        return reply

    def create(self, **body):
        return self.call("POST", "/sessions", body, expect=201).json()["session_id"]

    def exec(self, session, command, **more):
        return self.call("POST", f"/sessions/{session}/exec", {"command": command, **more}).json()

    def stream(self, session, command, **more):
        return events_of(self.call("POST", f"/sessions/{session}/exec", {"command": command, "stream": True, **more}).body)

    def delete(self, session):
        self.call("DELETE", f"/sessions/{session}", expect=204)

    def ids(self):
        return [one["session_id"] for one in self.call("GET", "/sessions").json()["sessions"]]
