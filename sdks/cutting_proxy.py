"""A TCP proxy that cuts event streams: each connection that carries one ends, without a word, after some hundred bytes of it."""
import contextlib
import random
import socket
import threading
import urllib.parse

HEAD = 900  # enough for the head of the answer and the event that names the command
MORE = 600


class CuttingProxy:
    """Stands before a server, at `url` with the same path. `cuts` counts what it cut."""

    def __init__(self, target):
        there = urllib.parse.urlsplit(target)
        self.target = (there.hostname, there.port)
        self.cuts = 0
        self._random = random.Random(1)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}{there.path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client):
        with client, socket.create_connection(self.target) as server:
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            self._answers(client, server)
            for end in (client, server):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _requests(client, server):
        with contextlib.suppress(OSError):
            while piece := client.recv(65536):
                server.sendall(piece)
            server.shutdown(socket.SHUT_WR)

    def _answers(self, client, server):
        left = None  # bytes until the cut; None while no event stream was seen
        with contextlib.suppress(OSError):
            while piece := server.recv(65536):
                if left is None and b"text/event-stream" in piece:
                    left = HEAD + self._random.randrange(MORE)
                if left is not None and len(piece) >= left:
                    client.sendall(piece[:left])
                    self.cuts += 1
                    return
                client.sendall(piece)
                left = None if left is None else left - len(piece)
