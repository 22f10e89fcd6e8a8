"""The agent chat as people meet it: a browser, the built page, its server, the scripted model, a real daemon.

Pictures of what was seen are left in build/agent-chat; those of the pages are three of them (examples/agent-chat/README.md).
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from harness import PROGRAM, ROOT, Daemon, free_port, wait_until
from playwright.sync_api import Page, expect, sync_playwright

FOLDER = ROOT / "examples" / "agent-chat"
PICTURES = ROOT / "build" / "agent-chat"
NODE = Path(os.environ.get("OSB_NODE", ROOT / "build" / "venv" / "bin" / "node"))
BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
ENVIRONMENT = {**os.environ, "PATH": f"{NODE.parent}:{os.environ['PATH']}"}
SECRET = "a-key-the-browser-must-never-see"

expect.set_options(timeout=15_000)


class Chat:
    """The chat's server, started as people start it, on a free port."""

    def __init__(self, program=PROGRAM, **environment):
        self.process = subprocess.Popen([FOLDER / "start"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**ENVIRONMENT, "OPENSANDBOX_PROGRAM": str(program), "CHAT_PORT": "0", **environment})
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise AssertionError(f"the chat did not start: {self.process.stderr.read()}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=20)
        return self.process.returncode, errors

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()


@pytest.fixture(scope="module")
def built():
    done = subprocess.run([FOLDER / "start", "--build"], env={**ENVIRONMENT, "OPENSANDBOX_PROGRAM": str(PROGRAM)}, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)


@pytest.fixture(scope="module")
def served(built, daemon):
    with Chat(OPENSANDBOX_URL=daemon.sessions_url, OPENSANDBOX_API_KEY=daemon.key, LLM_API_KEY=SECRET, CHAT_MAX_CHATS="50", CHAT_AWAY_SECONDS="2") as chat:
        yield chat


@pytest.fixture(scope="module")
def browser():
    assert BROWSER, "no browser: apt-get install chromium-headless-shell"
    with sync_playwright() as playwright:
        # The tests run as root, where Chromium's own sandbox cannot; it opens nothing but our page.
        made = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield made
        made.close()


class Seen:
    """What the browser did on the side: complaints, and every answer it got."""

    def __init__(self, page):
        self.complaints, self.urls, self.answers = [], [], []
        page.on("console", lambda message: self.complaints.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.urls.append(request.url))
        page.on("response", lambda response: self.answers.append(response))


@pytest.fixture
def open_page(browser, served):
    """open_page(...): the chat in a window of its own, when its sandbox runs."""
    with contextlib.ExitStack() as windows:
        def open_one(url=served.url, width=1180, height=780, state="running", **options):
            window = browser.new_context(viewport={"width": width, "height": height}, **options)
            windows.callback(window.close)
            page = window.new_page()
            page.seen = Seen(page)
            page.goto(url)
            expect(sandbox_state(page)).to_have_text(state)
            return page

        yield open_one


@pytest.fixture
def page(open_page):
    return open_page()


def sandbox_state(page: Page):
    return page.get_by_label("Sandbox", exact=True).get_by_role("status")


def sandbox_id(page: Page):
    return page.locator(".panel .id code").inner_text()


def say(page: Page, text):
    page.get_by_label("What shall the agent do?").fill(text)
    expect(page.get_by_role("button", name="Send")).to_be_enabled()
    page.keyboard.press("Enter")


def command(page: Page, text) -> object:
    return page.locator("section.command").filter(has_text=text).last


def idle(page: Page):
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def picture(page: Page, name):
    page.wait_for_timeout(400)  # bars and colours come to rest
    page.screenshot(path=PICTURES / f"{name}.png")


def test_the_welcome_shows_the_sandbox_and_the_rules(page):
    panel = page.get_by_label("Sandbox", exact=True)
    expect(panel.get_by_role("meter", name="Memory")).to_have_attribute("aria-valuetext", re.compile(r"B of 256 MB"))
    expect(panel.get_by_role("meter", name="Processes")).to_have_attribute("aria-valuetext", re.compile(r"\d+ of 64"))
    expect(panel.get_by_role("meter", name="Disk")).to_have_attribute("aria-valuetext", re.compile(r"of 64 MB"))
    expect(panel.get_by_text(re.compile(r"^1[45]:\d\d$"))).to_be_visible()
    expect(panel.get_by_text("no-network", exact=True)).to_be_visible()
    picture(page, "welcome")


def test_output_streams_while_the_command_runs(page):
    say(page, "count slowly")
    run = command(page, "tick")
    expect(run.get_by_label("Output")).to_contain_text("tick 1")
    expect(run).to_have_attribute("data-state", "running")  # the first lines are there long before the last
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(run.get_by_label("Output")).to_contain_text("tick 8")
    expect(run.get_by_text("exit 0")).to_be_visible()
    idle(page)
    expect(page.get_by_text("Done counting.")).to_be_visible()


def test_a_program_is_written_and_run_and_a_download_refused(page):
    page.get_by_role("button", name="Write a program").click()
    expect(command(page, "primes.py").get_by_label("Output")).to_contain_text("8  19")
    expect(page.get_by_text("There are 8 primes up to 20")).to_be_visible()
    idle(page)
    say(page, "Download https://example.com/ for me.")
    run = command(page, "curl -sS")
    expect(run.get_by_text("refused", exact=True)).to_be_visible()
    expect(run.locator(".ending")).to_contain_text("no-network")
    expect(page.get_by_text("I may not do that")).to_be_visible()
    idle(page)
    picture(page, "refused")


def test_a_person_is_asked_and_allows_then_denies(open_page):
    page = open_page(color_scheme="dark")
    for choice, verdict, outcome in (("Allow", "allowed by you", "The folder is gone."), ("Deny", "denied by you", "You did not allow it")):
        say(page, "Make a build folder, then delete it.")
        question = page.get_by_role("group", name="May the agent run this?")
        expect(question.get_by_role("timer")).to_have_text(re.compile(r"^(1:00|0:5\d)$"))
        expect(question).to_contain_text("deleting")
        assert page.title().startswith("(?)")
        if choice == "Allow":
            picture(page, "question")
        question.get_by_role("button", name=choice).click()
        run = command(page, "rm -rv build")
        expect(run.get_by_text(verdict)).to_be_visible()
        expect(page.get_by_text(outcome)).to_be_visible()
        idle(page)
    expect(page.get_by_label("Command rm -rv build").first.get_by_label("Output")).to_contain_text("removed")
    expect(page.get_by_label("Command rm -rv build").last.get_by_label("Output")).to_have_count(0)


def test_time_and_memory_run_out_and_are_told(page):
    say(page, "Start something that hangs forever.")
    expect(command(page, "sleep 600").locator(".badges").get_by_text("timed out")).to_be_visible()
    expect(page.get_by_text("It was still running after two seconds and was killed.")).to_be_visible()
    idle(page)
    say(page, "Use up all the memory.")
    expect(command(page, "bytearray").locator(".badges").get_by_text("out of memory")).to_be_visible()
    idle(page)
    expect(sandbox_state(page)).to_have_text("running")


def test_a_fork_bomb_meets_the_process_limit_is_killed_and_the_page_lives_on(page):
    say(page, "Start a fork bomb.")
    run = command(page, "os.fork")
    expect(page.get_by_role("meter", name="Processes")).to_have_attribute("aria-valuetext", "64 of 64")
    picture(page, "fork-bomb")
    expect(run.get_by_text("process limit met")).to_be_visible()
    expect(run.locator(".badges").get_by_text("timed out")).to_be_visible()
    idle(page)
    expect(sandbox_state(page)).to_have_text("running")
    expect(page.get_by_role("meter", name="Processes")).not_to_have_attribute("aria-valuetext", "64 of 64")
    say(page, "Look around.")
    expect(command(page, "whoami").get_by_text("exit 0")).to_be_visible()


def test_stop_interrupts_and_a_new_sandbox_replaces_the_old_one(page, daemon):
    first = sandbox_id(page)
    say(page, "Start something that hangs forever.")
    expect(command(page, "sleep 600").get_by_label("Output")).to_contain_text("started")
    page.get_by_role("button", name="Stop").click()
    expect(command(page, "sleep 600").locator(".badges").get_by_text("interrupted")).to_be_visible()
    expect(page.get_by_text("Stopped by you")).to_be_visible()
    idle(page)
    page.get_by_role("button", name="New sandbox").click()
    expect(page.get_by_text("A new sandbox: /workspace is empty again.")).to_be_visible()
    expect(sandbox_state(page)).to_have_text("running")
    assert sandbox_id(page) != first
    assert first not in [item["id"] for item in daemon.list()]


def test_foreign_text_is_shown_and_never_obeyed_and_nothing_leaves_this_machine(page, daemon, served):
    say(page, "Say something with a script tag.")
    run = command(page, "echo")
    expect(run.get_by_label("Output")).to_contain_text("<img src=x onerror=alert(1)><script>")
    expect(page.get_by_text("<i>Nothing</i> of it was obeyed.")).to_be_visible()
    idle(page)
    assert page.title() == "Agent chat · OpenSandbox"
    assert page.seen.complaints == []
    assert all(url.startswith(served.url) for url in page.seen.urls), page.seen.urls
    assert "'unsafe" not in page.seen.answers[0].headers["content-security-policy"]
    told = page.content() + "".join(answer.text() for answer in page.seen.answers if "/events" not in answer.url and answer.status == 200 and "woff2" not in answer.url)
    assert daemon.key not in told and SECRET not in told


def test_a_model_that_does_not_answer_is_told_and_the_chat_goes_on(page):
    say(page, "Pretend the model is offline.")
    expect(page.get_by_text("The model's endpoint answered 503: the scripted model plays an outage")).to_be_visible()
    say(page, "Look around.")
    expect(command(page, "whoami").get_by_text("exit 0")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_people_who_cannot_see_or_point_can_use_it(open_page, scheme):
    page = open_page(color_scheme=scheme)
    say(page, "Download it.")
    expect(command(page, "curl").get_by_text("refused", exact=True)).to_be_visible()
    idle(page)
    say(page, "Make a build folder, then delete it.")
    expect(page.get_by_role("button", name="Deny")).to_be_visible()
    page.evaluate((FOLDER / "node_modules" / "axe-core" / "axe.min.js").read_text())
    found = page.evaluate("axe.run().then(({violations}) => violations.map(({id, help, nodes}) => [id, help, nodes.map(({html}) => html.slice(0, 200))]))")
    assert found == []
    for _ in range(40):  # by keyboard alone, in no more steps than there are things
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Deny":
            break
    page.keyboard.press("Enter")
    expect(command(page, "rm -rv").get_by_text("denied by you")).to_be_visible()


def test_narrow_windows_have_room_for_everything(open_page):
    page = open_page(width=390, height=780)
    picture(page, "narrow")
    say(page, "Download it.")
    expect(command(page, "curl").get_by_text("refused", exact=True)).to_be_visible()
    idle(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out to the side"


def test_a_closed_page_takes_its_sandbox_along(open_page, daemon):
    page = open_page()
    own = sandbox_id(page)
    assert own in [item["id"] for item in daemon.list()]
    page.close(run_before_unload=False)
    wait_until(lambda: own not in [item["id"] for item in daemon.list()], 10, "the sandbox is destroyed when its page is closed")


def test_one_command_starts_everything_and_leaves_nothing(built, open_page, tmp_path):
    """No daemon answers at the address, so one is started; when the chat ends, its sandboxes and that daemon end too."""
    port = free_port()
    own = Daemon("chatown", config=f"sessions:\n  port: {port}\n")
    own.shared.mkdir()
    own.write_config()
    starter = tmp_path / "opensandbox"
    starter.write_text(f'#!/bin/sh\nexec {PROGRAM} "$@" --config {own.config}\n')
    starter.chmod(0o755)
    try:
        with Chat(program=starter, OPENSANDBOX_URL=f"http://127.0.0.1:{port}", OPENSANDBOX_API_KEY_FILE=str(own.state / "api-key")) as chat:
            page = open_page(url=chat.url)
            say(page, "Look around.")
            expect(command(page, "whoami").get_by_text("exit 0")).to_be_visible()
            say(page, "Make a build folder, then delete it.")  # with the key it found: whoever runs a command may not answer for it
            page.get_by_role("button", name="Allow").click()
            expect(page.get_by_text("The folder is gone.")).to_be_visible()
            idle(page)
            status, errors = chat.stop()
            assert status == 0, errors
            expect(page.get_by_text("The server was stopped.")).to_be_visible()
        own.stop_launcher()
    finally:
        own.stop()


def test_a_daemon_that_is_not_there_is_told(built, open_page):
    with Chat(program="/bin/false", OPENSANDBOX_URL=f"http://127.0.0.1:{free_port()}") as chat:
        page = open_page(url=chat.url, state="no sandbox")
        expect(page.get_by_role("alert")).to_contain_text("does not answer")
        expect(page.get_by_role("alert")).to_contain_text("./dev serve")
        say(page, "Look around.")
        expect(page.get_by_text("There is no sandbox to run this in")).to_be_visible()


def test_any_endpoint_that_speaks_chat_completions_can_answer(built, open_page, daemon):
    """Another model than the scripted one: its name is on the page, its key goes to it and nowhere else."""
    asked = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, self.headers["Authorization"], body["model"], body["stream"], [tool["function"]["name"] for tool in body["tools"]]))
            self.send_response(200)
            self.end_headers()
            chunk = {"choices": [{"delta": {"content": "I am another model."}}]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

        def log_message(self, *_):
            pass

    endpoint = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    try:
        with Chat(LLM_BASE_URL=f"http://127.0.0.1:{endpoint.server_port}/v1", LLM_MODEL="another", LLM_API_KEY=SECRET, OPENSANDBOX_URL=daemon.sessions_url,
                  OPENSANDBOX_API_KEY=daemon.key) as chat:
            page = open_page(url=chat.url)
            say(page, "Who are you?")
            expect(page.get_by_text("I am another model.")).to_be_visible()
            expect(page.get_by_text("another", exact=True)).to_be_visible()
    finally:
        endpoint.shutdown()
        endpoint.server_close()
    assert asked == [("/v1/chat/completions", f"Bearer {SECRET}", "another", True, ["run_command", "write_file"])]


def test_the_pictures_of_the_pages_can_be_made_anew():
    """Runs after the tests that make them: the pages' pictures are of the size they have there, and small."""
    for name in ("refused", "question", "fork-bomb"):
        ours, new = FOLDER / "pictures" / f"{name}.png", PICTURES / f"{name}.png"
        assert ours.stat().st_size < 200_000
        if new.exists():
            assert new.read_bytes()[16:24] == ours.read_bytes()[16:24], f"{name}: another size than the picture in the page"


def test_the_parts_of_the_chat_that_need_no_browser(built):
    done = subprocess.run(["npm", "test"], cwd=FOLDER, env=ENVIRONMENT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout
    done = subprocess.run(["npm", "run", "check"], cwd=FOLDER, env=ENVIRONMENT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout
