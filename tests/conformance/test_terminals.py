"""Terminals (/pty) through the server's proxy, with a WebSocket client that people use."""
import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from harness import EXECD_PORT, wait_until

PATIENCE = 20


class Client:
    """One connection to a terminal: output is collected, words (text frames) are handed out."""

    def __init__(self, socket):
        self.socket = socket
        self.output = b""
        self.replayed_from = None

    async def word(self):
        while True:
            frame = await asyncio.wait_for(self.socket.recv(), PATIENCE)
            if isinstance(frame, str):
                return json.loads(frame)
            self._collect(frame)

    async def sees(self, mark):
        while mark not in self.output:
            frame = await asyncio.wait_for(self.socket.recv(), PATIENCE)
            assert isinstance(frame, bytes), frame
            self._collect(frame)
        before, _, self.output = self.output.partition(mark)
        return before

    async def type(self, keys):
        await self.socket.send(b"\0" + keys)

    async def say(self, **message):
        await self.socket.send(json.dumps(message))

    async def close_of(self):
        with pytest.raises(ConnectionClosed):
            while True:
                self._collect(await asyncio.wait_for(self.socket.recv(), PATIENCE))
        return self.socket.close_code, self.socket.close_reason

    def _collect(self, frame):
        if frame[0] == 3:
            self.replayed_from = int.from_bytes(frame[1:9], "big")
        self.output += frame[9:] if frame[0] == 3 else frame[1:]


class Session:
    """A terminal session of one sandbox."""

    def __init__(self, daemon, sandbox, **wish):
        self.daemon, self.sandbox, self.token = daemon, sandbox, daemon.token(sandbox)
        answer = daemon.execd(sandbox, "POST", "/pty", wish or None, token=self.token)
        assert answer.status == 201, answer.body
        self.id = answer.json()["session_id"]

    def rest(self, method):
        return self.daemon.execd(self.sandbox, method, f"/pty/{self.id}", token=self.token)

    @asynccontextmanager
    async def attach(self, query="", headers=None):
        url = f"ws://127.0.0.1:{self.daemon.port}/sandboxes/{self.sandbox}/proxy/{EXECD_PORT}/pty/{self.id}/ws{query}"
        async with connect(url, additional_headers=self.token if headers is None else headers, proxy=None, close_timeout=2) as socket:
            yield Client(socket)


async def ready(client):
    assert (await client.word())["type"] == "connected"
    await client.type(b"PS1='$ '; bind 'set enable-bracketed-paste off'; echo re''ady\r")
    await client.sees(b"ready\r\n")
    await client.sees(b"$ ")  # what is typed before the prompt is shown twice: by the terminal, then by the shell


async def test_a_session_from_start_to_exit(daemon, sandbox):
    session = Session(daemon, sandbox, cwd="/tmp/made/here")
    assert session.rest("GET").json() == {"session_id": session.id, "running": False, "output_offset": 0}
    async with session.attach() as client:
        assert await client.word() == {"type": "connected", "session_id": session.id, "mode": "pty"}
        await client.type(b"echo hi-$((40+2))\r")
        await client.sees(b"hi-42\r\n")
        await client.say(type="resize", cols=120, rows=40)
        await client.type(b"pwd; stty size; id -u; stat -c owner-%u $(tty)\r")
        for mark in (b"/tmp/made/here\r\n", b"40 120\r\n", b"1000\r\n", b"owner-1000\r\n"):
            await client.sees(mark)
        await client.say(type="ping")
        assert await client.word() == {"type": "pong"}
        await client.type(b"exit 3\r")
        assert await client.word() == {"type": "exit", "exit_code": 3}
        assert await client.close_of() == (1000, "process exited")
    assert session.rest("GET").json()["running"] is False
    assert session.rest("DELETE").status == 200
    assert session.rest("GET").status == 404


async def test_the_token_is_a_header_and_nothing_else(daemon, sandbox):
    session = Session(daemon, sandbox)
    value = next(iter(session.token.values()))
    for query in ("", f"?token={value}", f"?X-EXECD-ACCESS-TOKEN={value}"):
        with pytest.raises(InvalidStatus) as refused:
            async with session.attach(query, headers={}):
                pass
        assert refused.value.response.status_code == 401
    async with session.attach() as client:
        assert (await client.word())["type"] == "connected"


async def test_reading_on_after_a_break_and_taking_over(daemon, sandbox):
    session = Session(daemon, sandbox)
    async with session.attach() as client:
        await ready(client)
        seen = session.rest("GET").json()["output_offset"]
        await client.type(b"sleep 0.3; echo la''ter; touch /tmp/done\r")
    wait_until(lambda: daemon.exec(sandbox, "test -e /tmp/done", token=session.token).exit_code == 0, PATIENCE, "the shell goes on alone")
    async with session.attach(f"?since={seen}") as first:
        assert (await first.word())["type"] == "connected"
        assert first.replayed_from == seen and b"later\r\n" in first.output
        with pytest.raises(InvalidStatus) as refused:
            async with session.attach():
                pass
        assert refused.value.response.status_code == 409
        assert json.loads(refused.value.response.body)["code"] == "ALREADY_CONNECTED"
        async with session.attach("?takeover=1") as second:
            assert (await second.word())["type"] == "connected"
            assert await first.close_of() == (4001, "TAKEN_OVER")
            assert second.replayed_from == 0
            await second.type(b"echo same-$PS1-shell\r")
            await second.sees(b"same-$ -shell\r\n")


async def test_a_terminal_survives_the_server(fresh_daemon):
    daemon = fresh_daemon
    session = Session(daemon, daemon.create())
    async with session.attach() as client:
        await ready(client)
        await client.type(b"KEPT=yes; echo before-the-kill\r")
        await client.sees(b"\r\nbefore-the-kill\r\n")
        daemon.kill_serve()
        with pytest.raises(ConnectionClosed):
            await client.sees(b"never said")
    daemon.restart()
    async with session.attach() as client:
        assert (await client.word())["type"] == "connected"
        assert client.replayed_from == 0 and b"before-the-kill\r\n" in client.output
        await client.type(b"echo still-$KEPT\r")
        await client.sees(b"still-yes\r\n")
    log = "".join(file.read_text() for file in (daemon.state / "audit").iterdir())
    assert log.count('"terminal.create"') == 1 and log.count('"terminal.attach"') == 2


async def test_terminals_are_private_and_take_no_injected_keys(daemon, sandbox):
    other = daemon.create()
    try:
        there, here = Session(daemon, other), Session(daemon, sandbox)
        async with there.attach() as first, here.attach() as second:
            await ready(first)
            await ready(second)
            await second.type(b"ls /dev/pts | tr '\\n' ,; echo; cat /proc/sys/kernel/pty/nr 2>/dev/null; tty\r")
            assert (await second.sees(b"/dev/pts/0\r\n")).splitlines()[1] == b"0,ptmx,", "only its own terminal"
            probe = (b"python3 -c \"import fcntl,termios\nfor name,request in (('STI',0x5412),('LINUX',0x541c),('SIZE',termios.TIOCGWINSZ)):\n"
                     b"  try: fcntl.ioctl(0, request, b'x' * 8); print(name, 'allowed')\n"
                     b"  except OSError as e: print(name, e.strerror)\"\r")
            await second.type(probe.replace(b"\n", b"\r"))
            await second.sees(b"STI Operation not permitted\r\n")
            await second.sees(b"LINUX Operation not permitted\r\n")
            await second.sees(b"SIZE allowed\r\n")
    finally:
        daemon.request("DELETE", f"/v1/sandboxes/{other}")


async def test_a_program_that_draws_the_whole_screen(daemon, sandbox):
    program = "import curses; s = curses.initscr(); s.addstr(5, 10, 'x'.join(map(str, s.getmaxyx()))); s.refresh(); c = s.getch(); curses.endwin(); print('key', c)"
    session = Session(daemon, sandbox, command=f'TERM=xterm python3 -c "{program}"')
    async with session.attach() as client:
        assert (await client.word())["type"] == "connected"
        await client.sees(b"\x1b[6;11H24x80")
        await client.type(b"q")
        await client.sees(b"key 113\r\n")
        assert await client.word() == {"type": "exit", "exit_code": 0}
