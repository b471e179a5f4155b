"""Parts of the recipes that need no server: settings, data, chat templates, rewards, the sandbox, objectives, agents."""

import copy
import json
import math
import os

import httpx
import pytest
import tinker

import folders
from recipes import Scripted, chat_of_tiny_model

from trainyard.recipes import agent_env, dpo, ppo, reward_model  # isort: skip
from trainyard.recipes.core import advantages, data, datums, objective  # isort: skip
from trainyard.recipes.core.agents import Proxy, Refused, Session, checked, play_any  # isort: skip
from trainyard.recipes.core.algorithms import ALGORITHMS  # isort: skip
from trainyard.recipes.core.attempts import Episode, Tally  # isort: skip
from trainyard.recipes.core.chat import Chat, Example, tool_calls  # isort: skip
from trainyard.recipes.core.config import ConfigError, load  # isort: skip
from trainyard.recipes.core.intervals import pass_at_k  # isort: skip
from trainyard.recipes.core.rewards import CodeReward, load_reward  # isort: skip
from trainyard.recipes.core.rollout import Limits, Trajectory, play  # isort: skip
from trainyard.recipes.core.run import rest  # isort: skip
from trainyard.recipes.core.sandbox import Sandbox, no_network  # isort: skip
from trainyard.recipes.envs import BlackBox, EnvironmentConfig, Outcome, load_suite  # isort: skip
from trainyard.recipes.envs.search import Bm25  # isort: skip
from trainyard.recipes.grpo import Config  # isort: skip


@pytest.fixture(scope="module")
def chat():
    return chat_of_tiny_model()


def test_flags_replace_the_environment_which_replaces_the_file(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('folder = "f"\nsteps = 1\nkl = 1\n[adam]\nbeta1 = 0.5\nbeta2 = 0.5\nlearning_rate = 0.5\n')
    environ = {"RECIPE_ADAM__BETA1": "0.6", "RECIPE_ADAM__BETA2": "0.6", "RECIPE_SINKS": "wandb,mlflow", "OTHER": "x"}
    argv = ["--config", str(file), "--adam.beta2", "0.7", "--mask-truncated", "--environment.options.largest=9"]
    read = load(Config, argv, environ, "x")
    assert (read.steps, read.kl, read.adam.learning_rate, read.adam.beta1, read.adam.beta2) == (1, 1.0, 0.5, 0.6, 0.7)
    assert read.sinks == ["wandb", "mlflow"] and read.mask_truncated and read.environment.options == {"largest": 9}
    assert isinstance(read.kl, float) and read.adam.eps == 1e-8
    with pytest.raises(ConfigError, match="group_size: must be at least 2"):
        load(Config, ["--folder=f", "--group_size=1"], {}, "x")
    with pytest.raises(ConfigError, match="--steps: steps: expected a whole number, found '1.5'"):
        load(Config, ["--folder=f", "--steps=1.5"], {}, "x")


def test_a_key_of_a_table_leaves_the_other_defaults_of_the_recipe():
    read = load(agent_env.Config, ["--folder=f", "--limits.max_tokens=9", "--environment.options.turns=2"], {}, "x")
    assert (read.limits.max_tokens, read.limits.max_turns) == (9, agent_env.Config(folder="f").limits.max_turns) == (9, 4)
    assert (read.environment.name, read.environment.options) == ("search", {"turns": 2})
    other = load(agent_env.Config, ["--folder=f", "--environment.name=sql", "--limits.max_turns=1"], {}, "x")
    assert (other.environment.name, other.environment.options, other.limits.max_turns) == ("sql", {}, 1)


def test_data_is_read_and_its_errors_have_a_place(tmp_path):
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"a": 1}\n\n{"a": 2}\n')
    assert data.read(str(lines)) == [{"a": 1}, {"a": 2}]
    lines.write_text('{"a": 1}\n{"a"\n')
    with pytest.raises(ConfigError, match=r"a\.jsonl:2"):
        data.read(str(lines))
    with pytest.raises(ConfigError, match="file not found"):
        data.read(str(tmp_path / "b.jsonl"))


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist([{"prompt": "x", "n": 1}]), tmp_path / "a.parquet")
    assert data.read(str(tmp_path / "a.parquet")) == [{"prompt": "x", "n": 1}]


def test_data_sets_in_a_folder(tmp_path, monkeypatch):
    """As `datasets` reads them: splits are named by the card."""
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    pytest.importorskip("datasets", exc_type=ImportError)
    folder = tmp_path / "set"
    folder.mkdir()
    files = [{"split": split, "path": f"{split}.jsonl"} for split in ("train", "test")]
    (folder / "README.md").write_text(f"---\n{json.dumps({'configs': [{'config_name': 'default', 'data_files': files}]})}\n---\n")
    record = lambda text: {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "Yes."}], "n": 1}  # noqa: E731
    for split, texts in (("train", ["a", "b"]), ("test", ["c"])):
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(record(text)) + "\n" for text in texts))
    assert data.read(f"hf:{folder}") == [record("a"), record("b")]
    assert data.read(f"hf:{folder}@test") == [record("c")]
    assert data.read(f"hf:{folder}@train[1:]") == [record("b")]
    with pytest.raises(ConfigError, match=r"validation: hf:.*@later: .*later"):
        data.read(f"hf:{folder}@later", "validation")
    with pytest.raises(ConfigError, match="data: hf:.*nowhere: "):
        data.read(f"hf:{tmp_path / 'nowhere'}")


def test_order_goes_on_where_it_stopped():
    whole = [batch for batch, _ in zip(data.batches(5, 2, 3), range(7), strict=False)]
    later = [batch for batch, _ in zip(data.batches(5, 2, 3, first=4), range(3), strict=False)]
    assert whole[4:] == later
    assert sorted(sum(whole, [])[:5]) == [0, 1, 2, 3, 4]


def test_only_chosen_turns_are_learned(chat):
    messages = [
        {"role": "user", "content": "A?"}, {"role": "assistant", "content": "one", "train": True},
        {"role": "user", "content": "B?"}, {"role": "assistant", "content": "two"},
    ]  # fmt: skip
    for loss_on, learned in (("all", "one<|end|>two<|end|>"), ("last", "two<|end|>"), ("marked", "one<|end|>")):
        example = chat.example(messages, loss_on)
        assert chat.tokenizer.decode(example.tokens) == chat.render([{k: m[k] for k in ("role", "content")} for m in messages])
        kept = [token for token, weight in zip(example.tokens, example.weights, strict=True) if weight]
        assert chat.tokenizer.decode(kept) == learned


def with_generation(chat, template):
    """The chat with another template."""
    tokenizer = copy.deepcopy(chat.tokenizer)
    tokenizer.chat_template = template
    return Chat(tokenizer)


def test_generation_blocks_decide_what_is_learned(chat):
    messages = [
        {"role": "user", "content": "A?"}, {"role": "assistant", "content": " one "},
        {"role": "user", "content": "B?"}, {"role": "assistant", "content": "two"},
    ]  # fmt: skip
    turn = "{{ '<|' + message.role + '|>' }}{% if message.role == 'assistant' %}{% generation %}{{ message.content }}<|end|>{% endgeneration %}{% else %}{{ message.content }}{% endif %}"
    loop = "{% for message in messages %}" + turn + "{% endfor %}"
    written = "{% macro turn(message) %}" + turn + "{% endmacro %}{% for message in messages %}{{ turn(message) }}{% endfor %}"
    kept = "{% set all %}{% for message in messages %}" + turn + "{% endfor %}{% endset %}{{ all | trim | upper }}"
    for template, learned in ((loop, " one <|end|>two<|end|>"), (written, " one <|end|>two<|end|>"), (kept, " ONE <|END|>TWO<|END|>")):
        marked = with_generation(chat, template)
        example = marked.example(messages, "generation")
        assert marked.tokenizer.decode(example.tokens, skip_special_tokens=False) == marked.render(messages)
        weighed = [token for token, weight in zip(example.tokens, example.weights, strict=True) if weight]
        assert marked.tokenizer.decode(weighed) == learned
    assert sum(chat.example(messages, "generation").weights) == 0, "the template marks nothing"


@pytest.mark.parametrize("shown", ["(all | length)", "all[:3]", "all | replace('A', '') | title", "all | list | last"])
def test_what_changes_marked_text_is_refused(chat, shown):
    """Offsets of `transformers` would be of another text."""
    block = "{% generation %}{{ messages[0].content }}{% endgeneration %}"
    marked = with_generation(chat, "{% set all %}x" + block + "{% endset %}{{ " + shown + " }}")
    messages = [{"role": "assistant", "content": "A 1"}]
    try:
        example = marked.example(messages, "generation")
    except ConfigError as refused:
        assert str(refused).startswith("loss_on: the chat template ")
    else:
        assert marked.tokenizer.decode(example.tokens) == marked.render(messages)


def test_sampled_tokens_are_never_encoded_again(chat):
    """Whatever was sampled, with or without an end token, the next turn follows it."""
    end = chat.encode("<|end|>")
    more = [{"role": "user", "content": "And?"}]
    assert chat.tokenizer.decode(chat.following([5, 6], more)) == "<|end|><|user|>And?<|end|><|assistant|>"
    assert chat.tokenizer.decode(chat.following([5, *end], more)) == "<|user|>And?<|end|><|assistant|>"


def test_rows_of_several_examples():
    rows = datums.joined([Example([1, 2, 3], [1, 1, 1]), Example([4, 5], [1, 1]), Example([6, 7, 8, 9], [0, 1, 1, 1])], 5)
    assert [row.tokens for row in rows] == [[1, 2, 3, 4, 5], [6, 7, 8, 9]]
    assert rows[0].weights == [0, 1, 1, 0, 1]


def test_sandbox_limits():
    sandbox = Sandbox(seconds=1, memory_mib=256)
    assert sandbox.run("print(6 * 7)").output == "42\n"
    assert not sandbox.run("raise SystemExit(3)").ok
    assert not sandbox.run("while True: pass").ok
    assert sandbox.run("import time; time.sleep(30)").timed_out
    assert "MemoryError" in sandbox.run("x = bytearray(1 << 30)").output
    assert not sandbox.run("open('big', 'wb').write(bytes(1 << 20))").ok
    assert len(sandbox.run("print('x' * 10_000_000)").output) <= 64 << 10
    secret = {"SECRET_OF_THE_TEST": "1"}
    os.environ.update(secret)
    assert sandbox.run("import os; print('SECRET_OF_THE_TEST' in os.environ)").output == "False\n"


def test_sandbox_has_no_network():
    if not no_network():
        with pytest.raises(ConfigError, match="network access can't be removed"):
            Sandbox(require_no_network=True).run("pass")
        pytest.skip("namespaces are not permitted here")
    tried = Sandbox().run("import socket; socket.create_connection(('127.0.0.1', 1), 1)")
    assert "Network is unreachable" in tried.output


def test_rewards():
    code = CodeReward(Sandbox(seconds=2))
    record = {"tests": ["assert f(1) == 2", "assert f(2) == 4"]}
    assert code("So:\n```python\ndef f(x):\n    return x + 1\n```", record) == 0.5
    with pytest.raises(ConfigError, match="expected math, code"):
        load_reward("best")
    with pytest.raises(ConfigError, match="no_such_module"):
        load_reward("no_such_module:f")


def test_math_reward():
    pytest.importorskip("math_verify")
    reward = load_reward("math")
    assert reward("It is $\\frac{2}{4}$.", {"answer": "0.5"}) == 1.0
    assert reward("It is 7.", {"answer": "8"}) == 0.0


def test_bm25_finds_rare_words_first():
    index = Bm25(["the cat sat", "the dog sat on the cat", "the bird"])
    assert index.best("dog", 2) == [1]
    assert index.best("cat", 2) == [0, 1], "the shorter text comes first"
    assert index.best("fish", 2) == []


def played(chat, name, *replies, turns=4, index=0, **options):
    environment = load_suite(EnvironmentConfig(name, options)).make(index)
    policy = Scripted(chat, *replies)
    return play(environment, policy, chat, Limits(max_turns=turns), 0), policy


def test_search_with_a_tool(chat):
    suite = load_suite(EnvironmentConfig("search"))
    question, answer = suite.questions[0]
    call = '<tool_call>{"name": "search", "arguments": {"query": "' + question[:-1] + '"}}</tool_call>'
    trajectory, policy = played(chat, "search", call, f"It is {answer}.")
    assert trajectory.reward == 1.0 and trajectory.turns == 2 and trajectory.metrics["searches"] == 1
    assert f"is {answer}." in chat.decode(policy.prompts[1])
    assert policy.prompts[1][: len(policy.prompts[0])] == policy.prompts[0], "a turn continues the sequence"
    assert sum(trajectory.mask) == trajectory.sampled and trajectory.oldest == 3
    held_out = {question for question, _ in load_suite(EnvironmentConfig("search"), held_out=True).questions}
    assert not held_out & {question for question, _ in suite.questions}


def without_thoughts(chat):
    """The chat with a template that leaves out what earlier answers thought, and says so with what follows them."""
    later = "{%- set content = message.content.split('</think>')[-1] %}"
    template = chat.tokenizer.chat_template.replace("message.content", "content")
    return with_generation(chat, template.replace("in messages %}", "in messages %}" + later))


def test_each_answer_has_a_sequence_of_its_own_if_it_is_asked_for(chat):
    suite = load_suite(EnvironmentConfig("search"))
    question, answer = suite.questions[0]
    call = '<tool_call>{"name": "search", "arguments": {"query": "' + question[:-1] + '"}}</tool_call>'
    replies, chosen = [f"<think>hm</think>{call}", f"<think>so</think>It is {answer}."], without_thoughts(chat)
    limits = Limits(max_turns=4, sequences="answer")
    policy, made = Scripted(chosen, *replies), suite.make(0)
    with Proxy() as proxy:
        first, last = play_any(made, proxy, policy, chosen, limits, 0)
    assert [chosen.decode(one.tokens[one.starts[0] :]) for one in (first, last)] == replies
    assert [one.tokens[: one.starts[0]] for one in (first, last)] == policy.prompts
    said = chosen.decode(policy.prompts[1])
    assert call in said and "hm" not in said and f"is {answer}." in said
    assert first.reward == last.reward == 1.0 and first.metrics == last.metrics
    assert [one.numbers for one in (first, last)] == [[0], [1]] and not last.truncated
    scored = Tally(limits, folders.new()).group(0, [Episode([first, last])], "env")
    assert [(one.episode, one.answers, max(one.later_answers())) for one in scored] == [(0, 2, 2), (0, 2, 2)]
    assert [one.later_answers()[-1] for one in scored] == [1, 0]
    # The second prompt does not fit.
    short = Limits(max_turns=4, max_tokens=8, max_context=len(policy.prompts[0]) + 8, sequences="answer")
    with Proxy() as proxy:
        (only,) = play_any(suite.make(0), proxy, Scripted(chosen, replies[0]), chosen, short, 0)
    assert only.truncated and only.reward == 0.0


def test_sql_runs_queries_that_only_read(chat):
    tried = '<tool_call>{"name": "run_sql", "arguments": {"query": "SELECT COUNT(*) FROM staff"}}</tool_call>'
    evil = '<tool_call>{"name": "run_sql", "arguments": {"query": "DELETE FROM staff"}}</tool_call>'
    trajectory, policy = played(chat, "sql", tried, evil, "```sql\nSELECT 'no'\n```", index=1)
    assert trajectory.turns == 3 and trajectory.reward == 0.1
    assert "not authorized" in chat.decode(policy.prompts[2])
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT MAX(x) FROM c"
    assert played(chat, "sql", endless)[0].reward == 0.0


def test_code_shows_what_failed(chat):
    trajectory, policy = played(chat, "code", "def f(x): return None", "def f(x): return None", turns=2)
    assert trajectory.turns == 2 and trajectory.reward == 0.0
    assert "AssertionError" in chat.decode(policy.prompts[1])


def test_advantages_and_scales():
    group = [Trajectory(mask=[False, True]), Trajectory(mask=[False, True])]
    assert advantages.estimated(group, [1.0, 0.0], "group", True) == [[0.0, 1.0], [0.0, -1.0]]
    assert advantages.estimated(group, [1.0, 1.0], "group", True) == [[0.0, 0.0], [0.0, 0.0]]
    short, long = Trajectory(mask=[True] * 2, answer_tokens=2), Trajectory(mask=[True] * 6, reward=1.0, answer_tokens=6)
    assert objective.scales([short, long], "token", 10) == [1 / 8, 1 / 8]
    assert objective.scales([short, long], "sequence", 10) == [1 / 4, 1 / 12]
    assert objective.scales([short, long], "constant", 10) == [1 / 20, 1 / 20]
    assert objective.shaped(long, 8, 4, 1.0) == 0.5 and objective.shaped(long, 8, 0, 1.0) == 1.0
    dapo = objective.loss_config(ALGORITHMS["dapo"])
    assert dapo == {"clip_low_threshold": 0.8, "clip_high_threshold": 1.28}


@pytest.mark.parametrize("sft_weight", [0.0, 0.3])
@pytest.mark.parametrize("loss", ["dpo", "ipo", "simpo"])
def test_slopes_of_preference_losses(loss, sft_weight):
    """Against differences of the losses."""
    smoothing = 0.1 if loss == "dpo" else 0.0
    config = dpo.Config(folder="x", data="x", loss=loss, label_smoothing=smoothing, sft_weight=sft_weight)
    pair = dpo.Pair(Example([1] * 4, [0, 1, 1, 1]), Example([1] * 3, [0, 1, 1]))
    judge = lambda c, r: dpo.judged(pair, dpo.Scored(c, r, -5.0, -4.0), config)  # noqa: E731
    _, slope, other, _ = judge(-4.0, -6.0)
    h = 1e-5
    assert slope == pytest.approx((judge(-4 + h, -6)[0] - judge(-4 - h, -6)[0]) / (2 * h), rel=1e-5)
    assert other == pytest.approx((judge(-4, -6 + h)[0] - judge(-4, -6 - h)[0]) / (2 * h), rel=1e-5)
    assert math.isfinite(judge(-1e6, 0.0)[0])
    without, *_ = dpo.preferred(pair, dpo.Scored(-4.0, -6.0, -5.0, -4.0), config)
    assert judge(-4.0, -6.0)[0] == pytest.approx(without + sft_weight * 4 / 3), "three tokens are learned"


def test_pass_at_k():
    assert pass_at_k(4, 0, 2) == 0.0 and pass_at_k(4, 3, 2) == 1.0
    assert pass_at_k(4, 1, 1) == 0.25 and pass_at_k(4, 1, 2) == 0.5


def test_calls_of_tools():
    text = 'Well. <tool_call>\n{"name": "a", "arguments": {"x": 1}}\n</tool_call><tool_call>{"name": </tool_call>'
    assert tool_calls(text) == [{"name": "a", "arguments": {"x": 1}}]


def test_the_proxy_continues_sequences_and_refuses_what_it_can_not_do(chat):
    call = '<tool_call>{"name": "look", "arguments": {"at": "x"}}</tool_call>'
    session = Session(Scripted(chat, call, "Seen.", "Other."), chat, Limits(max_turns=3), 0)
    messages = [{"role": "user", "content": "Look."}]
    first = session.answer({"model": "policy", "messages": messages})["choices"][0]
    assert first["finish_reason"] == "tool_calls" and first["message"]["tool_calls"][0]["function"]["name"] == "look"
    messages += [first["message"], {"role": "tool", "tool_call_id": "1", "content": "A cat."}]
    second = session.answer({"model": "policy", "messages": json.loads(json.dumps(messages))})["choices"][0]["message"]
    assert second["content"] == "Seen." and len(session.conversations) == 1
    one = session.conversations[0].trajectory
    assert one.turns == 2 and "A cat." in chat.decode(one.tokens)
    session.answer({"model": "policy", "messages": [{"role": "user", "content": "Anew."}]})
    assert len(session.conversations) == 2
    with pytest.raises(Refused, match="has reached its limit of 3 answers"):
        session.answer({"model": "policy", "messages": messages})
    for body, name in (({"stream": True}, "stream"), ({"n": 2}, "n: 2"), ({"response_format": {}}, "response_format")):
        with pytest.raises(Refused, match=name):
            checked({"messages": messages, **body})


class Talker(BlackBox):
    """Asks twice by HTTP; the second request continues the first."""

    def run(self, base_url, api_key, model):
        with httpx.Client(base_url=base_url, timeout=20) as http:
            messages = [{"role": "user", "content": "Hi"}]
            for _ in range(2):
                reply = http.post("chat/completions", json={"model": model, "messages": messages}).json()
                messages += [reply["choices"][0]["message"], {"role": "user", "content": "And?"}]
            refused = http.post("chat/completions", json={"messages": messages, "stream": True})
            assert refused.status_code == 400 and "stream" in refused.json()["error"]["message"]
            assert http.get("models").json()["data"][0]["id"] == model
            assert httpx.post(f"{base_url.replace(api_key, 'other')}/chat/completions", json={}).status_code == 404
        return Outcome(0.5)


def test_black_boxes_are_recorded(chat):
    with Proxy() as proxy:
        (one,) = play_any(Talker(), proxy, Scripted(chat, "Hello.", "Well."), chat, Limits(max_turns=2), 0)
    assert one.reward == 0.5 and one.turns == 2 and not proxy.sessions
    assert chat.tokenizer.decode(one.tokens).endswith("Hello.<|end|><|user|>And?<|end|><|assistant|>Well.<|end|>")


def test_advantages_follow_from_rewards_and_values():
    """Only over the sampled tokens, of two turns, against the sums of the definition."""
    mask = [False, True, True, False, True]
    trajectory = Trajectory([7] * 5, mask, [0.0, -1.0, -1.0, 0.0, -1.0], [0] * 5, reward=2.0)
    rewards = ppo.token_rewards(trajectory, {1: 0.5, 2: -0.5, 4: 1.0}, 0.1)
    assert rewards == pytest.approx([0, -0.05, 0.05, 0, 1.9])
    values, gamma, lam = [9.0, 1.0, 2.0, 9.0, 3.0], 0.9, 0.8
    found = ppo.estimated(trajectory, rewards, values, gamma, lam)
    deltas = [-0.05 + gamma * 2 - 1, 0.05 + gamma * 3 - 2, 1.9 - 3]
    expected = [sum((gamma * lam) ** k * delta for k, delta in enumerate(deltas[at:])) for at in range(3)]
    assert [found.advantages[at] for at in (1, 2, 4)] == pytest.approx(expected)
    assert [found.returns[at] for at in (1, 2, 4)] == pytest.approx([a + values[at] for a, at in zip(expected, (1, 2, 4), strict=True)])
    assert found.advantages[0] == found.returns[3] == found.values[3] == 0
    # With lambda = 1 and no discount returns are the sums of the rewards that follow.
    whole = ppo.estimated(trajectory, rewards, values, 1.0, 1.0)
    assert whole.returns == pytest.approx([0, 1.9, 1.95, 0, 1.9])
    other = ppo.estimated(Trajectory([7] * 2, [False, True], [0.0, -1.0], [0] * 2), [0, 5.0], [0, 1.0], 1.0, 1.0)
    ppo.whiten([whole, other])
    every = [whole.advantages[at] for at in (1, 2, 4)] + [other.advantages[1]]
    assert sum(every) == pytest.approx(0, abs=1e-12) and sum(x * x for x in every) == pytest.approx(4)
    assert whole.advantages[3] == 0


@pytest.mark.parametrize("chosen", [-1.0, 0.3, 2.0])
def test_slopes_of_the_bradley_terry_loss(chosen):
    config = reward_model.Config(folder="x", data="x", label_smoothing=0.1, centering=0.05)
    loss = lambda c, r: reward_model.judged(c, r, config).loss  # noqa: E731
    found, h = reward_model.judged(chosen, 0.5, config), 1e-5
    slopes = ((loss(chosen + h, 0.5) - loss(chosen - h, 0.5)) / (2 * h), (loss(chosen, 0.5 + h) - loss(chosen, 0.5 - h)) / (2 * h))
    assert found.slopes == pytest.approx(slopes, abs=1e-8)


def test_settings_of_ppo_are_checked():
    with pytest.raises(ConfigError, match="critic.value_clip: must be at least 0"):
        load(ppo.Config, ["--folder=f", "--critic.value_clip=-1"], {}, "x")
    with pytest.raises(ConfigError, match="minibatches: must be from 1 to tasks"):
        load(ppo.Config, ["--folder=f", "--tasks=2", "--minibatches=3"], {}, "x")
    read = load(ppo.Config, ["--folder=f", "--critic.adam.learning_rate=1"], {"RECIPE_GAE_LAMBDA": "0.5"}, "x")
    assert (read.critic.adam.learning_rate, read.adam.learning_rate, read.gae_lambda) == (1.0, 1e-4, 0.5)


def test_calls_go_to_the_server_that_the_environment_names_now(monkeypatch):
    """Without arguments, the SDK's client is that of the first server as long as the process lives."""
    monkeypatch.setattr(tinker, "RestClient", lambda **given: given)
    for url in ["http://127.0.0.1:1", "http://127.0.0.1:2"]:
        monkeypatch.setenv("TINKER_BASE_URL", url)
        monkeypatch.setenv("TINKER_API_KEY", "tml-a")
        assert rest() == {"base_url": url, "api_key": "tml-a"}
    monkeypatch.delenv("TINKER_API_KEY")
    assert rest() == {"base_url": url, "api_key": None}
