"""A door in front of the daemon for a client from before two rules of the protocol: ids are any text, and the headers of an endpoint answer
are sent with every request to that endpoint.

The Java SDK 1.0.0 (pinned in java/pom.xml) parses ids with java.util.UUID and drops those headers; later ones do neither. The door spells
ids the other way and adds the headers. Everything else passes unchanged, so that the rest of the client can be held against the server.
"""
import http.client
import json
import re
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ID = re.compile(rb"\b[0-9a-hjkmnp-tv-z]{26}\b")
PROXIED = re.compile(r"/sandboxes/([0-9a-z]{26})/proxy/(\d+)")
ASKED = re.compile(r"/sandboxes/([0-9a-z]{26})/endpoints/(\d+)")
UUID = re.compile(rb"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
HOPS = {"connection", "transfer-encoding", "content-length", "keep-alive"}


class Names:
    def __init__(self):
        self.ids = {}
        self.headers = {}  # (sandbox, port) -> what the endpoint answer handed out
        self.lock = threading.Lock()

    def to_uuid(self, text):
        def spell(match):
            name = str(uuid.uuid5(uuid.NAMESPACE_OID, match[0].decode())).encode()
            with self.lock:
                self.ids[name] = match[0]
            return name
        return ID.sub(spell, text)

    def to_id(self, text):
        return UUID.sub(lambda match: self.ids.get(match[0], b"z" * 26), text)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def relay(self):
        names = self.server.names
        body = self.body()
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOPS}
        path = names.to_id(self.path.encode()).decode()
        if proxied := PROXIED.search(path):
            headers.update(names.headers.get(proxied.groups(), {}))
        backend = http.client.HTTPConnection("127.0.0.1", self.server.backend, timeout=60)
        backend.request(self.command, path, body=body or None, headers=headers)
        answer = backend.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOPS:
                self.send_header(name, value)
        if answer.headers.get("Content-Type", "").startswith("application/json"):
            text = answer.read()
            if answer.status == 200 and (asked := ASKED.search(path)):
                names.headers[asked.groups()] = json.loads(text).get("headers", {})
            text = names.to_uuid(text)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        elif answer.status == 204 or answer.headers.get("Content-Length") == "0":
            if answer.status != 204:
                self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.stream(answer)
        backend.close()

    def stream(self, answer):
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while block := answer.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(block), block))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = relay


class UuidDoor(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, backend):
        super().__init__(("127.0.0.1", 0), Handler)
        self.backend = backend
        self.names = Names()
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
        self.thread.join()
