"""The console for who is new to it: names and comparisons of runs, a phone, the playground's ways, the first key, empty pages."""

import os
import re
import shlex
import subprocess
import sys

import httpx
import pytest
from playwright.sync_api import expect

import chat_model
import folders
from browser import Visit, chromium
from helpers import ADAM, WAIT, client, datum, lora
from helpers import TOKENS as TEXT
from process import PATIENCE
from server import REPOSITORY, SMOL
from tenancy import CONFIG as TENANTS
from tenancy import ROOT, new_key, seconds_until, trainyard

MODELS = {SMOL: chat_model.write(folders.new() / "tiny-chat")}
CONFIG = TENANTS
HTML = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
PICTURES = REPOSITORY / "docs" / "users" / "console"
PER_TOKEN = "forward_backward · loss:per_weighted_token"
WRITTEN = """
window.written = [];
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) { window.written.push(text); return fillText.call(this, text, ...rest); };
"""
"""Notes what is written on a canvas."""

pytestmark = [pytest.mark.timeout(240), pytest.mark.deployments("sqlite")]


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def chief(server):
    return new_key(server, "acme", "--role", "admin")[0]


@pytest.fixture(scope="module")
def named(server, chief):
    """Two runs with names, whose losses per token can be compared although their batches differ in size."""
    with client(server, chief) as service:
        runs = {}
        for name, count in (("small batches", 1), ("large batches", 4)):
            run = lora(service, SMOL, user_metadata={"name": name, "batch": str(count)})
            for _ in range(3):
                told = run.forward_backward([datum(TEXT)] * count, "cross_entropy").result(WAIT).metrics["loss:sum"]
                run.optim_step(ADAM).result(WAIT)
            runs[name] = (run.model_id, told, told / (count * (len(TEXT) - 1)))
        yield runs


@pytest.fixture
def visit(server, browser, chief):
    """An admin of acme, logged in."""
    visit = Visit(browser, server.url).log_in(chief)
    yield visit
    visit.check()
    visit.context.close()


def canvas(visit, metric):
    return visit.page.locator(f'canvas[aria-label^="{metric}."]')


def test_runs_are_listed_with_name_and_loss_per_token(visit, server, chief, named):
    visit.page.get_by_role("link", name="Runs", exact=True).click()
    for name, (run, loss, per_token) in named.items():
        row = visit.page.get_by_role("row", name=name)
        expect(row).to_contain_text(run)
        expect(row).to_contain_text(f"{loss:.6g}")
        expect(row).to_contain_text(f"{per_token:.6g}"[:6])
    found = httpx.get(f"{server.url}/console/data/runs?sort=loss_per_token", headers={"x-api-key": chief}, timeout=30).json()
    losses = [run["loss_per_token"] for run in found["runs"] if run["name"] in named]
    assert losses == sorted(losses)
    assert {run["name"]: run["loss_per_token"] for run in found["runs"]} == pytest.approx({name: each[2] for name, each in named.items()})


def test_runs_are_chosen_in_the_list_and_compared(visit, server, named):
    (small, (one, *_)), (large, (other, *_)) = named.items()
    visit.page.get_by_role("link", name="Runs", exact=True).click()
    visit.page.get_by_label(f"Compare {small}").check()
    expect(visit.page.get_by_text("Choose another run")).to_be_visible()
    visit.page.get_by_label(f"Compare {large}").check()
    visit.page.get_by_role("link", name="Compare 2 runs").click()
    both = re.compile(f"{small}: 3 points.*{large}: 3 points")
    expect(canvas(visit, PER_TOKEN)).to_have_attribute("aria-label", both)
    # It comes first, and beside it is the sum.
    expect(visit.page.locator("figcaption").first).to_contain_text(PER_TOKEN)
    expect(visit.page.locator("figcaption").nth(1)).to_contain_text("loss:sum")
    expect(canvas(visit, "optim_step · learning_rate")).to_be_visible()
    # The address leads to the same, and so does the short one.
    assert visit.page.url == f"{server.url}/#/run/{one}?with={other}"
    visit.page.goto(f"{server.url}/runs/{one}?with={other}")
    expect(visit.page.get_by_role("heading", level=1)).to_contain_text(small)
    expect(canvas(visit, PER_TOKEN)).to_have_attribute("aria-label", both)
    visit.page.get_by_role("button", name=f"Remove {other}").click()
    expect(canvas(visit, PER_TOKEN)).not_to_have_attribute("aria-label", both)
    assert visit.page.url == f"{server.url}/#/run/{one}"
    # A name is as good as an id.
    visit.page.get_by_label("Compare with").fill(large)
    visit.page.get_by_role("button", name="Add", exact=True).click()
    expect(canvas(visit, PER_TOKEN)).to_have_attribute("aria-label", both)
    visit.page.goto(f"{server.url}/runs?q=batch%3D4")
    expect(visit.page.get_by_role("region", name="1 run").get_by_role("link")).to_have_text([large])


def test_hovering_over_a_curve_moves_nothing(visit, named):
    (one, *_), (other, *_) = named.values()
    visit.open(f"#/run/{one}?with={other}")
    expect(canvas(visit, PER_TOKEN)).to_be_visible()
    visit.page.wait_for_timeout(300)
    places = lambda: visit.page.locator("figure").evaluate_all("all => all.map(each => each.getBoundingClientRect().toJSON())")  # noqa: E731
    before, readout = places(), visit.page.locator("figcaption output").first
    newest = readout.text_content()
    assert "2: " in newest, "the newest values are shown"
    box = canvas(visit, PER_TOKEN).bounding_box()
    visit.page.mouse.move(box["x"] + 70, box["y"] + 60)
    expect(readout).to_contain_text("0: ")
    assert places() == before
    visit.page.mouse.move(5, 5)
    expect(readout).to_have_text(newest)


@pytest.mark.parametrize(
    ("page", "chart", "mark"), [("overview", "Tokens per second, by minute", r"\d\d:\d\d"), ("admin", "Tokens by hour, last week", r"\d\d-\d\d")]
)
def test_time_axes_have_the_marks_of_their_span(server, browser, chief, named, page, chart, mark):
    visit = Visit(browser, server.url)
    visit.context.add_init_script(WRITTEN)
    visit.log_in(chief).open(f"#/{page}")
    visit.page.reload()
    expect(canvas(visit, chart)).to_have_attribute("aria-label", re.compile("training: "))
    canvas(visit, chart).scroll_into_view_if_needed()
    marks = lambda: {text for text in visit.page.evaluate("window.written") if re.search("[-:]", text)}  # noqa: E731
    seconds_until(lambda: len(marks()) >= 3)
    assert all(re.fullmatch(mark, text) for text in marks()), marks()
    visit.check()
    visit.context.close()


@pytest.mark.parametrize("page", ["overview", "runs", "run", "playground", "admin"])
def test_on_a_phone_nothing_is_cut_and_requests_are_folded(request, server, browser, chief, named, page):
    (one, *_), (other, *_) = named.values()
    visit = Visit(browser, server.url, viewport={"width": 390, "height": 844}).log_in(chief)
    visit.open(f"#/run/{one}?with={other}" if page == "run" else f"#/{page}")
    visit.page.locator("h1").wait_for()
    visit.page.wait_for_timeout(500)
    cut = "all => all.filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.ariaLabel)"
    assert visit.page.locator(".scroll").evaluate_all(cut) == []
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    if page == "run":
        rows = visit.page.get_by_role("region", name="The newest requests")
        expect(rows).not_to_be_visible()
        assert visit.page.evaluate("document.documentElement.scrollHeight") < 5_800 / 2
        if request.config.getoption("--write-pictures"):
            canvas(visit, PER_TOKEN).scroll_into_view_if_needed()
            visit.page.screenshot(path=PICTURES / "phone.png")
        visit.page.get_by_text(re.compile(r"^the newest \d")).click()
        expect(rows).to_contain_text("forward_backward")
    visit.check()
    visit.context.close()


def test_idle_minutes_have_no_tokens(visit, server, chief, named):
    expect(canvas(visit, "Tokens per second, by minute")).to_have_attribute("aria-label", re.compile("training: 60 points, from 0 to"))
    shown = httpx.get(f"{server.url}/console/data/overview", headers={"x-api-key": chief}, timeout=30).json()
    minutes = [rate["minute"] for rate in shown["rates"]]
    assert len(minutes) == 59 and all(after - before == 60_000 for before, after in zip(minutes, minutes[1:], strict=False))
    # An hour ago there was no server.
    assert shown["rates"][0]["trained"] == 0
    assert shown["latest"]["trained"] + sum(rate["trained"] for rate in shown["rates"]) > 0


def test_the_playground_wants_a_model_and_keeps_what_failed(visit):
    # No model is named.
    visit.page.goto(f"{visit.url}/playground")
    model, prompt = visit.page.get_by_role("combobox", name="First model"), visit.page.get_by_label("Prompt")
    expect(model).to_have_value(SMOL)
    model.fill("")
    prompt.fill("Hello")
    prompt.press("Control+Enter")
    expect(visit.page.get_by_role("alert").filter(has_text="Choose a model first.")).to_be_visible()
    talk = visit.page.get_by_role("log", name="First model: conversation")
    expect(talk).to_be_empty()
    # A turn that fails stays to be sent again, and is no part of the conversation.
    model.fill("nobody/nothing")
    prompt.press("Control+Enter")
    expect(talk.locator(".note.bad")).to_contain_text("nobody/nothing")
    expect(prompt).to_have_value("Hello")
    model.fill(SMOL)
    visit.page.get_by_label("Maximum tokens").fill("4")
    sent = []
    visit.page.on("request", lambda request: sent.append(request.post_data_json) if "chat/completions" in request.url else None)
    prompt.press("Control+Enter")
    expect(talk).to_contain_text(re.compile(r"(length|stop) · \d+ \+ \d+ tokens"), timeout=30_000)
    expect(prompt).to_have_value("")
    assert [body["messages"] for body in sent] == [[{"role": "user", "content": "Hello"}]]


def test_a_page_that_does_not_exist_is_a_page(visit, server):
    for path in ("nothing", "runs/a/b/c", "console/nothing.js"):
        shown = httpx.get(f"{server.url}/{path}", headers=HTML, timeout=30)
        assert (shown.status_code, shown.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "does not exist" in shown.text and "/#/runs" in shown.text
        plain = httpx.get(f"{server.url}/{path}", timeout=30)
        assert (plain.status_code, plain.headers["content-type"]) == (404, "application/json")
    assert httpx.get(f"{server.url}/api/v1/nothing", headers=HTML, timeout=30).json()["detail"]
    for wrong in ("#/nothing", "#/run/%E0%A4%A"):
        visit.open(wrong)
        expect(visit.page.get_by_role("heading", name="This page does not exist")).to_be_visible()


def test_limits_show_the_defaults_in_force(server, browser):
    visit = Visit(browser, server.url).log_in(ROOT)
    visit.page.get_by_role("link", name="Keys, projects, usage").click()
    requests = visit.page.get_by_role("row", name="Unfinished training requests")
    expect(requests).to_contain_text("32,768")
    expect(requests).to_contain_text("default")
    expect(visit.page.get_by_role("row", name="Tokens started per minute")).to_contain_text("none")
    # What is not changed stays unset.
    form = visit.page.get_by_role("form", name="Change limits")
    form.get_by_label("Runs at the same time").fill("70")
    form.get_by_role("button", name="Change limits").click()
    expect(visit.page.get_by_role("row", name="Runs at the same time")).to_contain_text("the store")
    expect(requests).to_contain_text("default")
    visit.check()
    visit.context.close()


def test_the_empty_list_shows_five_lines_that_start_a_run(server, browser, tmp_path):
    trainyard(server, "tenants", "create", "fresh")
    key = new_key(server, "fresh")[0]
    visit = Visit(browser, server.url).log_in(key)
    visit.page.get_by_role("link", name="Runs", exact=True).click()
    shell, python = (visit.page.get_by_label(label, exact=True).inner_text() for label in ("In a shell", "In Python"))
    assert len(python.splitlines()) == 5
    (line,) = [line for line in shell.splitlines() if line.startswith("export ")]
    exported = dict(word.split("=", 1) for word in shlex.split(line)[1:])
    assert exported["TINKER_BASE_URL"] == server.url and exported["TINKER_API_KEY"].startswith("tml-")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_", "TINKER_"))}
    environment = inherited | exported | {"TINKER_API_KEY": key, "HF_HOME": str(tmp_path), "TRANSFORMERS_VERBOSITY": "error"}
    # A program ends its session as it likes; here at once.
    program = f'{python}\nservice.close("success").result()'
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    row = visit.page.get_by_role("row", name="first run")
    expect(row).to_contain_text(SMOL, timeout=30_000)
    expect(row.get_by_role("cell").nth(6)).to_have_text(re.compile(r"\d+\.\d+"))
    visit.check()
    visit.context.close()


def test_the_first_key_is_an_admins_and_the_page_logs_in_with_it(own, browser):
    visit = Visit(browser, own.url).open("#/admin")
    use = lambda key: httpx.get(f"{own.url}/api/v1/admin/keys", headers={"x-api-key": key}, timeout=30).status_code  # noqa: E731
    create = visit.page.get_by_role("form", name="The first key").get_by_role("button", name="Create a key")
    create.click()
    dialog = visit.page.get_by_role("dialog")
    expect(dialog).to_contain_text("every program and every browser needs one")
    dialog.get_by_role("button", name="Cancel").click()
    assert use("tml-x") == 200
    create.click()
    visit.page.get_by_role("dialog").get_by_role("button", name="Create the first key").click()
    key = visit.page.locator("#new-key").inner_text()
    assert (use(key), use("tml-x")) == (200, 401)
    visit.page.get_by_role("button", name="Done").click()
    # The page goes on with the key: as an admin, who makes others of any role, and who can leave.
    expect(visit.page.get_by_role("row", name="admin")).to_contain_text(key[:8])
    expect(visit.page.get_by_role("button", name="Log out")).to_be_visible()
    visit.page.get_by_label("Name", exact=True).fill("laptop")
    visit.page.get_by_role("button", name="Create a key").click()
    member = visit.page.locator("#new-key").inner_text()
    visit.page.get_by_role("button", name="Done").click()
    assert use(member) == 403
    visit.page.get_by_role("button", name="Log out").click()
    expect(visit.page.get_by_label("API key")).to_be_visible()
    visit.check()
    visit.context.close()


def test_what_the_first_key_may_not_be_is_refused(own):
    keys = f"{own.url}/api/v1/admin/keys"
    for body, field in [({"role": "member"}, "role"), ({"scopes": ["sample"]}, "scopes")]:
        refused = httpx.post(keys, json={"name": "first"} | body, headers={"x-api-key": "tml-x"}, timeout=30)
        assert refused.status_code == 400 and refused.json()["detail"].startswith(f"{field}: the first key must"), refused.text
    assert httpx.get(keys, headers={"x-api-key": "tml-x"}, timeout=30).status_code == 200, "no key is needed yet"
