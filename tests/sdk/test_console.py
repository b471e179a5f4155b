"""The console in a real browser: log in, watch a run, chat with its checkpoint, manage keys; another tenant sees none of it."""

import pathlib
import re
import threading

import httpx
import pytest
from playwright.sync_api import expect

import chat_model
import folders
from browser import NARROW, Visit, chromium
from cuda_device import is_simulated
from helpers import ADAM, WAIT, client, datum, lora, refused, sample
from helpers import TOKENS as TEXT
from server import KEY, REPOSITORY, SMOL
from tenancy import CONFIG as TENANTS
from tenancy import ROOT, new_key
from wire import Wire

MODELS = {SMOL: chat_model.write(folders.new() / "tiny-chat")}
SLOW = "tml-slow-0123456789-0123456789"
"""Of an organisation that may start 60 tokens per minute."""
CONFIG = f"""{TENANTS}
[[tenants]]
name = "slow"
keys = [{{ name = "slow", key = "{SLOW}", role = "admin" }}]
tokens_per_minute = 60
"""
PICTURES = REPOSITORY / "docs" / "users" / "console"

pytestmark = [pytest.mark.timeout(240), pytest.mark.deployments("sqlite")]


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def chief(server):
    return new_key(server, "acme", "--role", "admin")[0]


@pytest.fixture(scope="module")
def trained(server, chief):
    """A run of acme with a checkpoint to chat with, and how to train on."""
    with client(server, chief, user_metadata={"team": "a"}) as service:
        run = lora(service, SMOL, user_metadata={"purpose": "demonstration", "trainyard.store_samples": "5"})

        def train(steps):
            for _ in range(steps):
                run.forward_backward([datum(TEXT)], "cross_entropy")
                step = run.optim_step(ADAM)
            step.result(WAIT)

        train(12)
        path = run.save_weights_for_sampler("chat").result(WAIT).path
        yield run.model_id, path, train


@pytest.fixture
def visit(server, browser, chief):
    """An admin of acme, logged in."""
    visit = Visit(browser, server.url).log_in(chief)
    yield visit
    visit.check()
    visit.context.close()


@pytest.fixture
def picture(request):
    """Keeps a picture of a page for the documentation, when asked to."""
    wanted = request.config.getoption("--write-pictures")
    return lambda visit, name: visit.page.screenshot(path=PICTURES / f"{name}.png") if wanted else None


def points(visit, metric) -> int:
    """How many points a curve has, as a screen reader is told."""
    label = visit.page.locator(f'canvas[aria-label^="{metric}"]').get_attribute("aria-label")
    return int(re.search(r"(\d+) points", label)[1])


def test_a_wrong_key_is_refused_and_a_session_ends(server, browser, chief):
    visit = Visit(browser, server.url).open()
    visit.page.get_by_label("API key").fill("tml-wrong-0123456789-0123456789")
    visit.page.get_by_role("button", name="Log in").click()
    expect(visit.page.get_by_role("alert")).to_contain_text("not known to this server")
    visit.check()
    visit.log_in(chief)
    (cookie,) = visit.context.cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    copied = {"cookie": f"{cookie['name']}={cookie['value']}"}
    use = lambda: httpx.get(f"{server.url}/api/v1/training_runs", headers=copied, timeout=30).status_code  # noqa: E731
    assert use() == 200
    visit.page.get_by_role("button", name="Log out").click()
    visit.page.get_by_label("API key").wait_for()
    assert visit.context.cookies() == []
    assert use() == 401, "a copy of the cookie outlives the logout"


def test_the_overview_shows_workers_and_models(visit, trained, picture):
    expect(visit.page.get_by_role("region", name="Base models that are served")).to_contain_text(SMOL)
    expect(visit.page.get_by_role("region", name="Processes that execute requests")).to_contain_text("this server")
    # Memory of workers, which all tenants share, is shown to the operator only.
    expect(visit.page.get_by_role("region", name="Processes that execute requests")).not_to_contain_text("MiB")
    expect(visit.page.get_by_role("region", name="Processes that execute requests")).to_contain_text("single")
    expect(visit.page.locator("canvas")).to_have_attribute("aria-label", re.compile("training: 60 points"))
    picture(visit, "overview")


def test_the_overview_shows_what_waits_and_what_failed(visit, server, chief):
    with client(server, chief) as service:
        run = lora(service, SMOL)
        short = datum(TEXT[:-1], target_tokens=TEXT[1:], weights=[1.0])
        refused(lambda: run.forward([short], "cross_entropy").result(WAIT))
        expect(visit.page.get_by_role("region", name="Newest first")).to_contain_text("weights")
        seen = threading.Event()
        length, number = (1, 4) if is_simulated() else (16, 30)

        def keep_busy():
            while not seen.is_set():
                for each in [run.forward([datum(TEXT * length)] * 8, "cross_entropy") for _ in range(number)]:
                    each.result(WAIT)

        busy = threading.Thread(target=keep_busy)
        busy.start()
        try:
            queues = visit.page.get_by_role("region", name="Unfinished requests by tenant")
            expect(queues).to_contain_text("acme", timeout=30_000)
        finally:
            seen.set()
            busy.join()
        visit.open(f"#/run/{run.model_id}")
        expect(visit.page.get_by_role("region", name="The newest requests")).to_contain_text("failed")


def test_a_run_says_why_its_next_request_waits(server, browser):
    wire = Wire(server, SLOW)
    run = wire.result(wire.create_model(wire.session(), model=SMOL).json()["request_id"]).json()["model_id"]
    for seq in range(1, 6):
        assert wire.forward_backward(run, seq, data=[list(range(1, 22))]).status_code == 200
    visit = Visit(browser, server.url).log_in(SLOW)
    visit.open(f"#/run/{run}")
    # Each takes 20 of the 60 tokens.
    waiting = visit.page.get_by_role("region", name="The newest requests").get_by_role("row", name="queued")
    expect(waiting).to_have_count(2)
    expect(waiting.last).to_contain_text("60 tokens per minute are used up")
    expect(waiting.first).not_to_contain_text("used up")
    visit.check()
    visit.context.close()


def test_runs_are_found_by_their_metadata(visit, trained, picture):
    run, *_ = trained
    visit.page.get_by_role("link", name="Runs", exact=True).click()
    words = visit.page.get_by_label("Contains")
    words.fill("purpose=demonstration")
    expect(visit.page.get_by_role("region", name="1 run").get_by_role("link")).to_have_text([run])
    picture(visit, "runs")
    words.fill("purpose=nothing")
    expect(visit.page.get_by_text("No run matches.")).to_be_visible()


def test_runs_are_found_by_project_tag_and_state_and_ordered(visit, server, chief, trained):
    run, *_ = trained
    with client(server, chief, project_id="whales", user_metadata={"team": "b"}) as service:
        other = lora(service, SMOL)
        other.forward_backward([datum(TEXT)], "cross_entropy").result(WAIT)
        visit.open("#/runs")
        shown = visit.page.get_by_role("region", name=re.compile("runs?$")).get_by_role("link")
        expect(shown.first).to_have_text(other.model_id)
        visit.page.get_by_label("Order").select_option("steps")
        expect(shown.first).to_have_text(run)
        visit.page.get_by_label("Contains").fill("project=whales")
        expect(shown).to_have_text([other.model_id])
        visit.page.get_by_label("State").select_option("ended")
        expect(visit.page.get_by_text("No run matches.")).to_be_visible()
    # Live: the list changes when the session ends.
    expect(shown).to_have_text([other.model_id], timeout=30_000)


def test_the_curve_of_a_run_grows_while_it_trains(visit, trained, picture):
    run, _, train = trained
    visit.open(f"#/run/{run}")
    loss = "forward_backward · loss:sum"
    expect(visit.page.locator(f'canvas[aria-label^="{loss}"]')).to_be_visible()
    before = points(visit, loss)
    training = threading.Thread(target=train, args=(8,))
    training.start()
    grown = re.compile(f"{before + 8} points")
    expect(visit.page.locator(f'canvas[aria-label^="{loss}"]')).to_have_attribute("aria-label", grown, timeout=30_000)
    training.join()
    expect(visit.page.get_by_role("region", name="The newest requests")).to_contain_text("optim_step")
    picture(visit, "run")
    # With the keyboard: the cursor reads values, plus zooms in, 0 shows everything again.
    visit.page.locator(f'canvas[aria-label^="{loss}"]').focus()
    visit.page.keyboard.press("ArrowRight")
    expect(visit.page.locator("figcaption", has_text=loss).locator("output")).to_contain_text(":")
    visit.page.keyboard.press("+")
    expect(visit.page.locator(f'canvas[aria-label^="{loss}"]')).not_to_have_attribute("aria-label", grown)
    visit.page.keyboard.press("0")
    expect(visit.page.locator(f'canvas[aria-label^="{loss}"]')).to_have_attribute("aria-label", grown)


def test_runs_are_overlaid_smoothed_and_read_over_time(visit, server, chief, trained):
    run, *_ = trained
    with client(server, chief) as service:
        other = lora(service, SMOL)
        other.forward_backward([datum(TEXT)], "cross_entropy").result(WAIT)
    visit.open(f"#/run/{run}")
    canvas = visit.page.locator('canvas[aria-label^="forward_backward · loss:sum"]')
    expect(canvas).to_be_visible()
    visit.page.get_by_label("Compare with").fill(other.model_id)
    visit.page.get_by_role("button", name="Add", exact=True).click()
    expect(canvas).to_have_attribute("aria-label", re.compile(f"{other.model_id}: 1 points"))
    pixels = lambda: canvas.evaluate("canvas => canvas.toDataURL()")  # noqa: E731
    before = pixels()
    visit.page.get_by_label("Smoothing").fill("0.9")
    visit.page.wait_for_timeout(200)
    assert pixels() != before
    visit.page.get_by_label("Over").select_option("time")
    expect(canvas).to_have_attribute("aria-label", re.compile(f"{other.model_id}: 1 points"))
    box = canvas.bounding_box()
    total = points(visit, "forward_backward · loss:sum")
    visit.page.get_by_label("Over").select_option("step")
    visit.page.get_by_role("button", name=f"Remove {other.model_id}").click()
    visit.page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 100)
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 100)
    visit.page.mouse.up()
    expect(canvas).not_to_have_attribute("aria-label", re.compile(f"{total} points"))
    visit.page.get_by_role("button", name="Show everything").click()
    expect(canvas).to_have_attribute("aria-label", re.compile(f"{total} points"))


def test_metrics_are_exported(visit, trained):
    run, *_ = trained
    visit.open(f"#/run/{run}")
    for name, suffix in (("JSON Lines", ".jsonl"), ("Parquet", ".parquet")):
        with visit.page.expect_download() as download:
            visit.page.get_by_role("link", name=name).click()
        assert download.value.suggested_filename.endswith(suffix)
        assert pathlib.Path(download.value.path()).stat().st_size > 100


def test_a_checkpoint_expires_is_downloaded_and_deleted(visit, server, chief):
    with client(server, chief) as service:
        run = lora(service, SMOL)
        run.forward_backward([datum(TEXT)], "cross_entropy")
        run.optim_step(ADAM).result(WAIT)
        path = run.save_weights_for_sampler("gone").result(WAIT).path
        run.save_weights_external("files").result(WAIT)
        visit.open(f"#/run/{run.model_id}")
        row = visit.page.get_by_role("row", name=path)
        row.get_by_role("button", name="Expiry").click()
        visit.page.get_by_label("Days from now").fill("2")
        visit.page.get_by_role("button", name="Set").click()
        expect(row).not_to_contain_text("never")
        row.get_by_role("button", name="Delete").click()
        visit.page.get_by_role("dialog").get_by_role("button", name="Yes").click()
        expect(row).to_have_count(0)
        exported = visit.page.get_by_role("row", name="external_weights/files")
        with visit.page.expect_download() as download:
            exported.get_by_role("button", name="Download").click()
        assert download.value.suggested_filename.startswith("adapter_")


def test_samples_of_a_run_are_shown_as_they_come(visit, server, chief, trained, picture):
    run, path, _ = trained
    visit.open(f"#/run/{run}")
    visit.page.get_by_role("link", name="Samples of this run").click()
    expect(visit.page.get_by_text("of at most 5 stored")).to_be_visible()
    words = [3 + byte for byte in b"Once upon a time"]
    with client(server, chief) as service:
        sampler = service.create_sampling_client(model_path=path)
        found = sample(sampler, words, num_samples=2, max_tokens=24, seed=3, stop=[])
    shown = visit.page.get_by_role("article").first
    expect(shown).to_contain_text(f"Prompt {len(words)} tokens")
    expect(shown).to_contain_text("Once upon a time")
    expect(shown.locator(".token")).to_have_count(sum(len(sequence.tokens) for sequence in found.sequences))
    first = found.sequences[0]
    title = shown.locator(".token").first.get_attribute("title")
    assert title == f"log-probability {first.logprobs[0]:.4f}, token {first.tokens[0]}"
    picture(visit, "samples")
    assert visit.page.get_by_role("article").count() <= 5
    visit.page.get_by_role("button", name="Delete all").click()
    visit.page.get_by_role("dialog").get_by_role("button", name="Yes").click()
    expect(visit.page.get_by_role("article")).to_have_count(0)


def test_a_checkpoint_is_published_and_deleted(visit, server, chief, trained):
    run, path, _ = trained
    visit.open(f"#/run/{run}")
    row = visit.page.get_by_role("row", name=path)
    row.get_by_role("button", name="Publish").click()
    row.get_by_role("button", name="Make private").click()
    expect(row.get_by_role("button", name="Publish")).to_be_visible()
    row.get_by_role("button", name="Delete").click()
    visit.page.get_by_role("dialog").get_by_role("button", name="No").click()
    expect(row).to_be_visible()


def test_two_models_answer_side_by_side(visit, trained, picture):
    _, path, _ = trained
    visit.open(f"#/playground?model={path}")
    expect(visit.page.get_by_role("combobox", name="First model")).to_have_value(path)
    visit.page.get_by_label("Two side by side").check()
    visit.page.get_by_label("Log-probabilities").check()
    visit.page.get_by_label("Maximum tokens").fill("12")
    visit.page.get_by_label("Seed").fill("1")
    visit.page.get_by_label("Prompt").fill("Hello")
    visit.page.get_by_role("button", name="Send").click()
    for log in ("First model: conversation", "Second model: conversation"):
        talk = visit.page.get_by_role("log", name=log)
        expect(talk).to_contain_text(re.compile(r"(length|stop) · \d+ \+ \d+ tokens"), timeout=30_000)
        assert talk.locator(".token").count() > 0
    picture(visit, "playground")


def test_a_base_model_completes_a_text(visit):
    visit.open("#/playground")
    visit.page.locator("#mode").select_option("completion")
    visit.page.get_by_label("Maximum tokens").fill("5")
    visit.page.get_by_label("Prompt").fill("Once upon")
    visit.page.get_by_role("button", name="Send").click()
    talk = visit.page.get_by_role("log", name="First model: conversation")
    expect(talk).to_contain_text(re.compile(r"(length|stop) · \d+ \+ \d+ tokens"), timeout=30_000)
    assert visit.page.get_by_label("Prompt").input_value() == "Once upon", "it is tried again with other settings"


def test_a_key_is_created_used_and_revoked(visit, server, picture):
    visit.page.get_by_role("link", name="Keys, projects, usage").click()
    expect(visit.page.get_by_role("region", name="Quotas and rate limits")).to_contain_text("Runs at the same time")
    assert visit.page.get_by_role("form", name="Change limits").count() == 0, "an operator's admin changes limits"
    visit.page.get_by_label("Project id").fill("summaries")
    visit.page.get_by_role("button", name="Create a project").click()
    expect(visit.page.get_by_role("link", name="summaries")).to_be_visible()
    visit.page.get_by_label("Name", exact=True).fill("laptop")
    visit.page.get_by_role("button", name="Create a key").click()
    key = visit.page.locator("#new-key").inner_text()
    visit.page.get_by_role("button", name="Done").click()
    use = lambda: httpx.get(f"{server.url}/api/v1/training_runs", headers={"x-api-key": key}, timeout=30).status_code  # noqa: E731
    assert use() == 200
    picture(visit, "admin")
    with visit.page.expect_download() as download:
        visit.page.get_by_role("link", name="Each request as CSV").click()
    assert download.value.suggested_filename == "usage.csv"
    visit.page.get_by_role("button", name="Revoke laptop").click()
    visit.page.get_by_role("dialog").get_by_role("button", name="Yes").click()
    expect(visit.page.get_by_role("row", name="laptop")).to_contain_text("revoked")
    assert use() == 401
    visit.page.get_by_role("button", name="Delete summaries").click()
    visit.page.get_by_role("dialog").get_by_role("button", name="Yes").click()
    expect(visit.page.get_by_role("link", name="summaries")).to_have_count(0)


def test_an_operators_admin_changes_the_limits_of_an_organisation(server, browser, chief):
    visit = Visit(browser, server.url).log_in(ROOT)
    visit.page.get_by_role("link", name="Keys, projects, usage").click()
    visit.page.get_by_label("Organisation").select_option("acme")
    runs = visit.page.get_by_role("row", name="Runs at the same time")
    expect(runs).to_contain_text("none")
    limits = visit.page.get_by_role("form", name="Change limits")
    limits.get_by_label("Runs at the same time").fill("70")
    limits.get_by_role("button", name="Change limits").click()
    expect(runs).to_contain_text("70")
    path = f"{server.url}/api/v1/admin/organisations/acme/limits"
    assert httpx.get(path, headers={"x-api-key": chief}, timeout=30).json()["max_runs"] == {"value": 70, "origin": "store"}
    limits.get_by_label("Runs at the same time").fill("")
    limits.get_by_role("button", name="Change limits").click()
    expect(runs).to_contain_text("none")
    visit.check()
    visit.context.close()


def test_another_tenant_sees_nothing_of_it(server, browser, trained):
    run, *_ = trained
    visit = Visit(browser, server.url).log_in(ROOT)
    visit.page.get_by_role("link", name="Runs", exact=True).click()
    expect(visit.page.get_by_text("There are no runs yet.")).to_be_visible()
    visit.open(f"#/run/{run}")
    expect(visit.page.get_by_role("alert")).to_contain_text("does not exist")
    visit.check()
    for path in (
        f"console/data/runs/{run}", f"console/data/runs/{run}/requests", f"console/data/events?topic=run&run_id={run}",
        f"console/data/runs/{run}/samples", f"console/data/events?topic=samples&run_id={run}",
    ):  # fmt: skip
        foreign = visit.page.request.get(f"{server.url}/{path}")
        missing = visit.page.request.get(f"{server.url}/{path}".replace(run, "none:train:0"))
        assert foreign.status == missing.status == 404
        assert foreign.json()["detail"].replace(run, "X") == missing.json()["detail"].replace("none:train:0", "X")
    visit.context.close()


@pytest.mark.parametrize("page", ["overview", "runs", "run", "samples", "playground", "admin"])
def test_pages_fit_a_phone_in_the_dark(server, browser, chief, trained, page):
    run, *_ = trained
    visit = Visit(browser, server.url, viewport=NARROW, color_scheme="dark").log_in(chief)
    visit.open(f"#/{page}/{run}" if page in ("run", "samples") else f"#/{page}")
    visit.page.locator("h1").wait_for()
    visit.page.wait_for_timeout(500)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    visit.check()
    visit.context.close()


def test_the_addresses_of_the_sdk_lead_to_pages(server, browser, chief, trained, monkeypatch):
    """`get_console_url()` names the hosted service; the same path here shows the same thing."""
    from tinker.lib import console_urls

    run, path, _ = trained
    monkeypatch.setattr(console_urls, "_CONSOLE_BASE_URL", server.url)
    visit = Visit(browser, server.url).log_in(chief)
    for address, heading in [
        (console_urls.training_run_console_url(run), run), (console_urls.session_console_url(run.split(":")[0]), "Runs"),
        (console_urls.checkpoint_playground_url(path), "Playground"),
    ]:  # fmt: skip
        visit.page.goto(address)
        expect(visit.page.get_by_role("heading", level=1)).to_contain_text(heading)
    visit.check()
    visit.context.close()


def test_the_console_can_be_switched_off(tmp_path, deploy):
    with deploy(tmp_path, flags=["--no-console"]) as plain:
        get = lambda path: httpx.get(f"{plain.url}/{path}", headers={"accept": "text/html", "x-api-key": KEY}, timeout=30)  # noqa: E731
        assert "console" not in get("").json()
        for path in ("console/app.js", "console/session", "console/data/runs", "console/data/events?topic=overview"):
            assert get(path).status_code == 404, path
