"""The package as it is, in a browser: a page of an allowed origin runs code and reads a stream, one of another origin does not."""
import contextlib
import functools
import http.server
import shutil
import threading
from pathlib import Path

import pytest

import harness

SDK = Path(__file__).resolve().parent.parent
BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
SCRIPT = """async (url) => {
  const { SandboxClient } = await import('/dist/index.js');
  const client = new SandboxClient({ baseUrl: url, maxRetries: 0 });
  const sandbox = await client.createSandbox();
  try {
    await sandbox.uploadFile(new Blob(['from a page']), 'a.txt');
    let text = '';
    for await (const event of await sandbox.run('cat a.txt; echo; echo streamed', { stream: true })) text += event.text;
    const missing = await sandbox.downloadFile('nothing').catch((error) => error);
    return [text, missing.name, Boolean(missing.requestId)];
  } finally {
    await sandbox.destroy();
  }
}"""


@contextlib.contextmanager
def pages():
    """The SDK's folder over HTTP: a page and the modules it imports."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SDK))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def page():
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


@pytest.mark.skipif(not BROWSER, reason="no Chromium here (./dev test installs one)")
def test_a_page_of_an_allowed_origin_uses_the_sdk_and_another_does_not(page):
    with pages() as allowed, pages() as other, harness.Daemon("sdks-page", f"sessions:\n  allowed_origins: ['{allowed}']\n") as daemon:
        page.goto(f"{allowed}/README.md")
        assert page.evaluate(SCRIPT, daemon.sessions_url) == ["from a page\nstreamed\n", "RemoteFileNotFound", True]
        page.goto(f"{other}/README.md")
        with pytest.raises(Exception, match="ConnectionLost|NotAuthorized"):
            page.evaluate(SCRIPT, daemon.sessions_url)
        assert daemon.list() == []
