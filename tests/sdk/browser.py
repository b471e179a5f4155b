"""A headless Chromium on the console: what it logs, which hosts it asks, what axe-core finds."""

import contextlib
import os
import pathlib
import urllib.parse

import axe_playwright_python
import pytest
from playwright.sync_api import Page, sync_playwright

CHROMIUM = os.environ.get("TRAINYARD_CHROMIUM", "/usr/bin/chromium")
"""Of the distribution: `apt-get install chromium`."""
AXE = next(pathlib.Path(axe_playwright_python.__file__).parent.rglob("axe.min.js"))
WIDE, NARROW = {"width": 1200, "height": 900}, {"width": 360, "height": 740}


class Visit:
    """A browser with one page, as one person has it."""

    def __init__(self, browser, url, **context):
        self.url, self.problems, self.hosts = url, [], set()
        # axe-core comes with the test, and Chromium would refuse it under the page's policy.
        self.context = browser.new_context(**({"viewport": WIDE, "locale": "en-GB", "timezone_id": "UTC"} | context))
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.page.on("console", lambda message: self.logged(message))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(urllib.parse.urlsplit(request.url).netloc))

    def logged(self, message):
        # Chromium reports the refusal that asks for a login, and each that a test provokes.
        if message.type in ("error", "warning") and "status of 40" not in message.text:
            self.problems.append(message.text)

    def open(self, where=""):
        self.page.goto(f"{self.url}/{where}")
        return self

    def log_in(self, key):
        self.open()
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("heading", name="Overview").wait_for()
        return self

    def violations(self) -> list[str]:
        """What axe-core takes for serious."""
        session = self.context.new_cdp_session(self.page)
        # In a world of its own: the page's policy is for scripts of the page.
        frame = session.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
        world = session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "axe"})["executionContextId"]
        evaluate = lambda expression: session.send(  # noqa: E731
            "Runtime.evaluate",
            {"expression": expression, "contextId": world, "awaitPromise": True, "returnByValue": True},
        )
        evaluate(AXE.read_text())
        answer = evaluate("axe.run().then(({violations}) => violations.map(({id, impact, nodes}) => "
                          "`${impact} ${id}: ${nodes.map(({html}) => html.slice(0, 200)).join(' | ')}`))")  # fmt: skip
        found = answer["result"]["value"]
        session.detach()
        return [violation for violation in found if violation.startswith(("serious", "critical"))]

    def check(self):
        """No console error, no other host, nothing serious for assistive technology."""
        assert self.problems == []
        assert self.hosts <= {urllib.parse.urlsplit(self.url).netloc}, self.hosts
        assert self.violations() == []


@contextlib.contextmanager
def chromium():
    if not pathlib.Path(CHROMIUM).exists():
        pytest.skip(f"there is no {CHROMIUM}: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
