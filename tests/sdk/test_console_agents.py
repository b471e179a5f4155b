"""Agent sessions on the console, in a real browser: the list, a session turn by turn, its branches; another tenant sees none of it."""


import httpx
import pytest
from playwright.sync_api import expect

import chat_model
import folders
from agent_sessions import Session
from browser import NARROW, Visit, chromium
from server import SMOL, REPOSITORY
from tenancy import CONFIG as TENANTS
from tenancy import ROOT, new_key

MODELS = {SMOL: chat_model.write(folders.new() / "tiny-chat")}
CONFIG = TENANTS
PICTURES = REPOSITORY / "docs" / "users" / "console"

pytestmark = [pytest.mark.timeout(240), pytest.mark.deployments("sqlite")]


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def chief(server):
    return new_key(server, "acme", "--role", "admin")[0]


class Played:
    """A session with a conversation of two turns, and with a branch that has another history."""

    def __init__(self, server, key):
        self.session = Session(server, key, SMOL, max_turns=9)
        self.agent = self.session.openai()
        self.messages = [{"role": "user", "content": "Hello there, naïve café?"}]
        self.say(self.messages)
        self.say(self.messages)
        self.say([{"role": "user", "content": "Hello there, naïve café?"}, {"role": "assistant", "content": "Not said."},
                  {"role": "user", "content": "And now?"}])  # fmt: skip

    def say(self, messages):
        biased = {"logit_bias": {str(chat_model.EOS): -100}}
        reply = self.agent.chat.completions.create(model="x", messages=messages, max_tokens=8, seed=1, extra_body=biased)
        messages += [{"role": "assistant", "content": reply.choices[0].message.content}, {"role": "user", "content": "Go on."}]


@pytest.fixture(scope="module")
def played(server, chief):
    return Played(server, chief)


@pytest.fixture
def visit(server, browser, chief):
    visit = Visit(browser, server.url).log_in(chief)
    yield visit
    visit.check()
    visit.context.close()


def test_sessions_are_listed_as_they_come(visit, server, chief, played):
    visit.page.get_by_role("link", name="Agents", exact=True).click()
    rows = visit.page.get_by_role("region", name="Newest first")
    row = rows.get_by_role("row", name=played.session.id)
    expect(row).to_contain_text("open")
    expect(row).to_contain_text("3 of 9")
    new = Session(server, chief, SMOL)
    expect(rows.get_by_role("row", name=new.id)).to_contain_text("0 of 256")
    new.end()
    expect(rows.get_by_role("row", name=new.id)).to_contain_text("ended")
    row.get_by_role("link").click()
    expect(visit.page.get_by_role("heading", level=1)).to_contain_text(played.session.id)


def test_a_session_is_shown_turn_by_turn_with_tokens_and_masks(visit, played, request):
    visit.open(f"#/agent/{played.session.id}")
    branches = visit.page.get_by_role("region", name="Branches")
    first, second = (played.session.trajectories())[:2]
    expect(branches.get_by_role("row", name=first["branch"])).to_contain_text("first of the session")
    expect(branches.get_by_role("row", name=second["branch"])).to_contain_text("history_differs: no recorded turn")
    turns = visit.page.get_by_role("article")
    expect(turns).to_have_count(2)
    for at, turn in enumerate(first["turns"]):
        shown = turns.nth(at)
        expect(shown).to_contain_text(turn["turn_id"])
        expect(shown).to_contain_text("weight 1")
        expect(shown.locator(".trained .token")).to_have_count(turn["tokens"])
        logprob = first["datum"]["loss_fn_inputs"]["logprobs"]["data"][turn["start"] - 1]
        token = first["datum"]["loss_fn_inputs"]["target_tokens"]["data"][turn["start"] - 1]
        title = shown.locator(".token").first.get_attribute("title")
        assert title == f"log-probability {logprob:.4f}, token {token}"
    expect(visit.page.get_by_role("group", name="Prompt of turn 1")).to_have_text(
        "<|user|>Hello there, naïve café?<|end|><|assistant|>"
    )
    if request.config.getoption("--write-pictures"):
        visit.page.screenshot(path=PICTURES / "agent.png")
    visit.page.locator("select[name=branch]").select_option("1")
    expect(turns).to_have_count(1)
    expect(turns.first).to_contain_text("Begins a branch: history_differs")
    # What is sampled meanwhile appears: the longer branch is now the last one.
    played.say(played.messages)
    expect(turns).to_have_count(3)
    played.session.reward(0.5)
    expect(visit.page.get_by_role("main")).to_contain_text("Reward0.5")


def test_another_tenant_sees_nothing_of_it(server, browser, played):
    visit = Visit(browser, server.url).log_in(ROOT)
    visit.page.get_by_role("link", name="Agents", exact=True).click()
    expect(visit.page.get_by_text("There are no agent sessions.")).to_be_visible()
    visit.open(f"#/agent/{played.session.id}")
    expect(visit.page.get_by_role("alert")).to_contain_text("does not exist")
    for path in ("agent_sessions/ID", "events?topic=agent&agent_session_id=ID"):
        foreign = visit.page.request.get(f"{server.url}/console/data/{path.replace('ID', played.session.id)}")
        missing = visit.page.request.get(f"{server.url}/console/data/{path.replace('ID', 'none')}")
        assert foreign.status == missing.status == 404
        assert foreign.json()["detail"].replace(played.session.id, "X") == missing.json()["detail"].replace("none", "X")
    # The session's own key is not for the console.
    own = {"x-api-key": played.session.key}
    answer = httpx.get(f"{server.url}/console/data/agent_sessions/{played.session.id}", headers=own, timeout=30)
    assert answer.status_code == 403, answer.text
    visit.check()
    visit.context.close()


@pytest.mark.parametrize("page", ["agents", "agent"])
def test_pages_fit_a_phone_in_the_dark(server, browser, chief, played, page):
    visit = Visit(browser, server.url, viewport=NARROW, color_scheme="dark").log_in(chief)
    visit.open(f"#/agent/{played.session.id}" if page == "agent" else "#/agents")
    visit.page.get_by_role("article" if page == "agent" else "row").last.wait_for()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    visit.check()
    visit.context.close()
