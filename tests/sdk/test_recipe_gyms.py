"""Environments of SkyRL-Gym, of servers of OpenEnv, and with tools of MCP servers, where the packages are installed."""

import json
import re
import socket
import sqlite3
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from local_server import serving
from scripted import call, played, suite_of, tiny_chat, user, written

from trainyard.recipes.core.config import ConfigError  # isort: skip


@pytest.fixture(scope="module")
def chat():
    return tiny_chat()


SUM = {"prompt": user("2 + 3?"), "env_class": "gsm8k", "reward_spec": {"ground_truth": "5"}, "data_source": "x"}


def test_gsm8k_of_skyrl(chat, tmp_path):
    pytest.importorskip("skyrl_gym")
    suite = suite_of("skyrl_gym", data=written(tmp_path / "train.jsonl", SUM))
    for answer, reward in (("It is #### 5", 1.0), ("It is #### 6", 0.0)):
        one, seen = played(chat, suite, 0, answer)
        assert (one.reward, one.turns, len(seen)) == (reward, 1, 1)
        assert "2 + 3?" in seen[0]
    turns = suite_of("skyrl_gym", data=str(tmp_path / "train.jsonl"), env="gsm8k_multi_turn", max_turns=2)
    one, seen = played(chat, turns, 0, "#### 4", "#### 5")
    assert (one.reward, one.turns, one.metrics) == (1.1, 2, {"steps": 2.0})
    assert "Now provide only the final numeric answer" in seen[1]


def test_text2sql_of_skyrl(chat, tmp_path):
    pytest.importorskip("skyrl_gym")
    folder = tmp_path / "spider" / "database" / "shop"
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "shop.sqlite") as database:
        database.execute("CREATE TABLE sold (article TEXT, price INTEGER)")
        database.execute("INSERT INTO sold VALUES ('tea', 3), ('bread', 4)")
    query = "SELECT sum(price) FROM sold"
    record = {
        "prompt": user("What was sold in all?"), "env_class": "text2sql", "db_id": "shop", "data": "spider",
        "reward_spec": {"ground_truth": query},
    }  # fmt: skip
    more = {"data": written(tmp_path / "train.jsonl", record), "settings": {"db_path": str(tmp_path)}, "max_turns": 3}
    suite = suite_of("skyrl_gym", **more)
    first = f"<think>Look.</think><sql>{query}</sql>"
    one, seen = played(chat, suite, 0, first, f"<think>Done.</think><solution>{query}</solution>")
    assert (one.reward, one.turns) == (1.0, 2)
    assert "7" in seen[1].split("</sql>")[1]
    one, _ = played(chat, suite, 0, "<think>No.</think><solution>SELECT 8</solution>")
    assert one.reward < 1


class Retrieval(BaseHTTPRequestHandler):
    """A search server that finds the query itself."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        found = [{"document": {"contents": f"All about {asked['query']}"}, "score": 1.0}]
        body = json.dumps({"result": [found[: asked["topk"]]]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing."""


def test_search_of_skyrl(chat, tmp_path):
    pytest.importorskip("skyrl_gym")
    record = {"prompt": user("Who?"), "env_class": "search", "reward_spec": {"ground_truth": {"target": ["Ada"]}}}
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Retrieval)) as url:
        settings = {"search_url": f"{url}/retrieve", "topk": 1}
        suite = suite_of("skyrl_gym", data=written(tmp_path / "train.jsonl", record), settings=settings)
        one, seen = played(chat, suite, 0, "<search>first programmer</search>", "<answer>Ada</answer>")
    assert (one.reward, one.turns) == (1.0, 2)
    assert "All about first programmer" in seen[1]


REGISTERED = """
from skyrl_gym import register
from skyrl_gym.envs.base_text_env import BaseTextEnv


class Parrot(BaseTextEnv):
    def __init__(self, env_config, extras):
        super().__init__()
        self.word, self.changes = env_config.word, extras["changes"]

    def step(self, action):
        found = {"observations": [], "reward": self.word in action, "done": True, "metadata": {}}
        return found | ({"postprocessed_action": "other"} if self.changes else {})


register(id="parrot", entry_point=Parrot)
"""


def test_own_classes_of_skyrl(chat, tmp_path, monkeypatch):
    """An environment without a dataclass for its settings, and what it may not do."""
    pytest.importorskip("skyrl_gym")
    (tmp_path / "tiny_parrot.py").write_text(REGISTERED)
    monkeypatch.syspath_prepend(tmp_path)
    records = [{"prompt": "Say hello.", "changes": changes} for changes in (False, True)]
    options = {"data": written(tmp_path / "train.jsonl", *records), "env": "parrot", "module": "tiny_parrot"}
    suite = suite_of("skyrl_gym", **options, settings={"word": "hello"})
    one, _ = played(chat, suite, 0, "hello")
    assert one.reward == 1.0
    with pytest.raises(ConfigError, match="postprocessed_action"):
        played(chat, suite, 1, "hello")


@pytest.mark.parametrize(
    ("record", "options", "message"),
    [
        (SUM, {"env": "chess"}, "environment.options.env: skyrl_gym has no 'chess'; registered are aime, "),
        ({"prompt": "x"}, {}, "environment.options.env: missing, and record 1 of .* has no 'env_class'"),
        ({"env_class": "gsm8k"}, {}, "record 1 of .* has no 'prompt'"),
        (SUM | {"env_class": "search"}, {"settings": {"url": "x"}}, "environment.options.settings: search has no 'url'; it has log_requests"),
        (SUM, {"module": "no_such_module"}, "environment.options.module: No module named 'no_such_module'"),
        (SUM, {"colour": 1}, "environment.options: .*colour"),
    ],
)
def test_wrong_settings_of_skyrl_are_named(tmp_path, record, options, message):
    pytest.importorskip("skyrl_gym")
    with pytest.raises(ConfigError, match=message):
        suite_of("skyrl_gym", data=written(tmp_path / "train.jsonl", record), **options)


def test_a_record_that_does_not_suit_its_environment_is_named(chat, tmp_path):
    pytest.importorskip("skyrl_gym")
    suite = suite_of("skyrl_gym", data=written(tmp_path / "train.jsonl", {"prompt": "x", "env_class": "gsm8k"}))
    with pytest.raises(ConfigError, match="record 1 of .* does not suit gsm8k: reward_spec field is required"):
        suite.make(0)


@pytest.fixture(scope="module")
def openenv():
    """URLs of two servers: one in which a number is guessed, and one whose tools add."""
    core = pytest.importorskip("openenv.core.env_server")
    import uvicorn
    from fastmcp import FastMCP
    from openenv.core.env_server.mcp_environment import MCPEnvironment

    class Guess(core.Action):
        guess: str

    class Hint(core.Observation):
        text: str

    class Guessing(core.Environment):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def reset(self, seed=None, **_):
            self.wanted = seed % 10
            return Hint(text="Guess a digit.")

        def step(self, action, **_):
            digit = re.search(r"\d", action.guess)
            if digit is None:
                raise ValueError("no digit")
            right = int(digit.group()) == self.wanted
            return Hint(text="Higher." if int(digit.group()) < self.wanted else "Lower.", reward=float(right), done=right)

        @property
        def state(self):
            return core.State()

    class Adding(MCPEnvironment):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self):
            tools = FastMCP("adding")

            @tools.tool
            def add(a: int, b: int) -> int:
                """Adds two numbers."""
                return a + b

            super().__init__(tools)

        def reset(self, seed=None, **_):
            return core.Observation()

        def _step_impl(self, action, **_):
            raise AssertionError("only tools")

        @property
        def state(self):
            return core.State()

    from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation

    applications = [
        core.create_fastapi_app(Guessing, Guess, Hint, max_concurrent_envs=4),
        core.create_fastapi_app(Adding, CallToolAction, CallToolObservation, max_concurrent_envs=4),
    ]
    urls, servers = [], []
    for application in applications:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(application, port=port, log_level="warning"))
        threading.Thread(target=server.run, daemon=True).start()
        while not server.started:
            time.sleep(0.02)
        urls.append(f"http://127.0.0.1:{port}")
        servers.append(server)
    yield urls
    for server in servers:
        server.should_exit = True


def test_a_text_environment_of_openenv(chat, openenv):
    options = {"url": openenv[0], "action": {"guess": "My guess: {reply}"}, "shown": "text", "prompt": "A game."}
    suite, held_out = suite_of("openenv", tasks=20, **options), suite_of("openenv", True, tasks=20, held_out_tasks=3, **options)
    assert (len(suite), len(held_out)) == (20, 3)
    one, seen = played(chat, suite, 17, "5", "8", "7")
    assert (one.reward, one.turns) == (1.0, 3)
    assert "A game.\n\nGuess a digit." in seen[0]
    assert "Higher." in seen[1] and "Lower." in seen[2].split("Higher.")[1]
    one, _ = played(chat, held_out, 1, "1")
    assert one.reward == 1.0
    error, _ = played(chat, suite, 0, "none")
    assert "no digit" in str(error)


def test_observations_are_shown_whole_by_default(chat, openenv):
    suite = suite_of("openenv", url=openenv[0], action={"guess": "{reply}"})
    one, seen = played(chat, suite, 3, "3")
    assert one.reward == 1.0 and '{"text": "Guess a digit."}' in seen[0]
    with pytest.raises(ConfigError, match="an observation has no 'colour'; it has text"):
        suite_of("openenv", url=openenv[0], action={"guess": "{reply}"}, shown="colour").make(0).reset()


def test_tools_of_openenv(chat, openenv):
    suite = suite_of("openenv", url=openenv[1], tools=True, prompt="Add 2 and 3.")
    one, seen = played(chat, suite, 0, call("add", a=2, b=3) + call("multiply"), "5")
    assert (one.reward, one.turns) == (0.0, 2)
    assert "Adds two numbers." in seen[0] and "Add 2 and 3." in seen[0]
    answers = seen[1].split("<|tool|>")[1:]
    assert answers[0].startswith("5") and "multiply" in answers[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"action": {"x": "y"}}, "environment.options.action: has no {reply}"),
        ({"action": {"x": "{reply}"}, "tools": True, "prompt": "x"}, "environment.options.action: with tools"),
        ({"tools": True}, "environment.options.prompt: with tools"),
        ({"url": "http://127.0.0.1:9"}, "environment.options.url: .*127.0.0.1:9"),
    ],
)
def test_wrong_settings_of_openenv_are_named(openenv, options, message):
    with pytest.raises(ConfigError, match=message):
        suite_of("openenv", **{"url": openenv[0], **options})


TOOLS = """
import os
import sys

from mcp.server import MCPServer

server = MCPServer("shop")
calls = 0


@server.tool()
def price(article: str) -> int:
    \"""Returns the price of an article in euros.\"""
    global calls
    calls += 1
    if article not in ("tea", "bread"):
        raise ValueError(f"no article {article}")
    return len(article) * calls


@server.tool()
def PLACE() -> str:
    \"""Says where it is.\"""
    return os.environ.get("SHOP", "nowhere")


server.run()
"""


@pytest.fixture
def shop(tmp_path):
    """Settings of a server with two tools; the second has this name."""
    pytest.importorskip("mcp")

    def made(place="where", **more):
        program = tmp_path / f"shop_{place}.py"
        program.write_text(TOOLS.replace("PLACE", place))
        return {"command": sys.executable, "args": [str(program)], "env": {"PYTHONPATH": ":".join(sys.path)} | more}

    return made


def test_tools_of_mcp_servers(chat, tmp_path, shop, monkeypatch):
    """The answer without a call is judged; each episode has servers of its own."""
    (tmp_path / "shop_reward.py").write_text("def paid(answer, record):\n    return float(record['sum'] in answer)\n")
    monkeypatch.syspath_prepend(tmp_path)
    source = written(tmp_path / "train.jsonl", {"prompt": "What does tea cost?", "sum": "3"})
    suite = suite_of("mcp", servers=[shop(SHOP="here")], data=source, reward="shop_reward:paid", system="Be short.")
    for _ in range(2):
        lines = [call("price", article="tea") + call("where"), call("price", article="milk") + call("steal"), "3"]
        one, seen = played(chat, suite, 0, *lines)
        assert (one.reward, one.turns) == (1.0, 3)
        assert "Returns the price of an article" in seen[0] and "Be short." in seen[0]
        results = [text.split("<|assistant|>")[0] for text in seen[2].split("<|tool|>")[1:]]
        assert results[:2] == ["3", "here"]
        assert "Error" in results[2]
        assert results[3] == "Error: unknown tool 'steal'; expected one of price, where"


def test_servers_that_can_not_be_used_are_named(tmp_path, shop):
    source = written(tmp_path / "train.jsonl", {"prompt": "x", "answer": "1"})
    for servers, message in (
        ([], "environment.options.servers: at least one is required"),
        ([{"command": "no-such-program"}], "environment.options.servers: .*no-such-program"),
        ([{"url": "http://127.0.0.1:9/mcp"}], "environment.options.servers: "),
        ([{"url": "x", "command": "y"}], r"servers\[0\]: expected either a url or a command"),
        ([{"url": "x", "args": []}], r"servers\[0\]: a server with a url has no further settings"),
        ([{"command": "x", "key": "y"}], r"servers\[0\].key: unknown; expected args, command, cwd, env, url"),
        ([shop("where"), shop("there")], "environment.options.servers: two servers have a tool 'price'"),
    ):
        with pytest.raises(ConfigError, match=message):
            suite_of("mcp", servers=servers, data=source, reward="none")


@pytest.mark.parametrize(
    ("name", "module", "install", "options"),
    [
        ("mcp", "mcp", "mcp", {"servers": [{"url": "x"}], "reward": "none"}),
        ("skyrl_gym", "skyrl_gym", "skyrl-gym", {"data": "x.jsonl"}),
        ("openenv", "openenv.core", "openenv-core", {"url": "http://127.0.0.1:9"}),
    ],
)
def test_without_its_package_an_environment_names_it(tmp_path, monkeypatch, name, module, install, options):
    monkeypatch.setitem(sys.modules, module, None)
    if name == "mcp":
        options = options | {"data": written(tmp_path / "train.jsonl", {"prompt": "x"})}
    with pytest.raises(ConfigError, match=f"the package {name} is not installed; run: pip install {install}"):
        suite_of(name, **options)
