"""What `make cookbook` runs, its data sets and the hub that serves them: without the cookbook's packages."""

import json
import re
import sys

import httpx
import pytest

from server import REPOSITORY, TINY

sys.path.insert(0, str(REPOSITORY / "tests" / "cookbook"))

import data_hub  # isort: skip
import inventory  # isort: skip
import page  # isort: skip
import stand_ins  # isort: skip
import tiny_models  # isort: skip

COLUMNS = {
    "HuggingFaceH4/no_robots": {"prompt", "prompt_id", "messages", "category"},
    "openai/gsm8k": {"question", "answer"},
    "Anthropic/hh-rlhf": {"chosen", "rejected"},
}

pytestmark = pytest.mark.deployments("sqlite")


def rows(files, split):
    return [json.loads(line) for line in files[f"{split}.jsonl"].decode().splitlines()]


def test_every_program_of_the_cookbook_runs_or_has_a_reason():
    known = inventory.listed()
    assert not page.uncovered(known)
    assert len(page.uncovered(known | {"tinker_cookbook.recipes.new": "program"})) == 1
    assert all(program.reason and program.refused for program in page.REASONS)
    assert not set().union(*(program.modules for program in page.REASONS + page.RUN)) - known.keys()


def test_the_page_lists_what_is_run():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.written(text) == text, "run tests/cookbook/page.py --write"


def test_a_new_module_is_noticed(tmp_path):
    recipes = tmp_path / "recipes" / "new"
    recipes.mkdir(parents=True)
    (recipes / "train.py").write_text("if __name__ == '__main__':\n    pass\n")
    (recipes / "env.py").write_text("TEXT = \"\"\"\nif __name__ == '__main__':\n\"\"\"\n")
    (recipes / "env_test.py").write_text("if __name__ == '__main__':\n    pass\n")
    found = inventory.inventory(tmp_path)
    program, module = (f"tinker_cookbook.recipes.new.{name}" for name in ("train", "env"))
    assert found == {program: "program", module: "module"}
    assert inventory.differences(found, {module: "program", "gone": "module"}) == [
        f"new module: {module}", f"new program: {program}", "no longer there: gone",
    ]  # fmt: skip


def test_tokens_of_tiny_models_have_the_ids_that_their_configurations_name():
    tokens = tiny_models.vocabulary()
    assert len(tokens) == len(set(tokens)) == tiny_models.VOCABULARY
    for folder in set(tiny_models.MODELS.values()):
        described = json.loads((tiny_models.GOLDEN / folder / "config.json").read_text())
        if "image_token_id" in described:
            assert tokens[described["image_token_id"]] == "<|image_pad|>"
            assert tokens[described["vision_start_token_id"]] == "<|vision_start|>"


def test_data_sets_of_several_configurations_have_a_file_for_each_split():
    name = "agentica-org/DeepCoder-Preview-Dataset"
    files = stand_ins.repositories()[name]
    assert {"lcbv5-train.jsonl", "lcbv5-test.jsonl", "codeforces-test.jsonl"} < files.keys()
    assert "codeforces-train.jsonl" not in files


def test_data_sets_are_the_same_every_time():
    assert stand_ins.repositories() == stand_ins.repositories()


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_have_the_columns_and_splits_of_the_public_set(name):
    files = stand_ins.repositories()[name]
    ((_, splits),) = stand_ins.SETS[name].values()
    for split, number in splits.items():
        found = rows(files, split)
        assert len(found) == number
        assert all(set(row) == COLUMNS[name] for row in found)


def test_problems_end_with_their_answer_and_pairs_differ_in_the_last_reply_alone():
    sets = stand_ins.repositories()
    for row in rows(sets["openai/gsm8k"], "train"):
        (number,) = re.match(r"Say \\boxed\{(\d)\}\. ", row["question"]).groups()
        assert row["answer"].endswith(f"#### {number}")
    for row in rows(sets["Anthropic/hh-rlhf"], "train"):
        chosen, rejected = (row[kind].rsplit("\n\nAssistant:", 1) for kind in ("chosen", "rejected"))
        assert chosen[0] == rejected[0] and chosen[1] != rejected[1]


def test_the_model_with_thoughts_differs_in_names_of_tokens_alone(tmp_path):
    source, made = tmp_path / "a.gguf", tmp_path / "b.gguf"
    source.write_bytes(b"before" + stand_ins.UNUSED + b"after")
    text = stand_ins.thinking_model(source, made).read_bytes()
    assert len(text) == source.stat().st_size and text.startswith(b"before") and text.endswith(b"after")
    assert stand_ins.strings(b"<think>", b"</think>") in text
    source.write_bytes(b"another model")
    with pytest.raises(ValueError, match="is not the test model"):
        stand_ins.thinking_model(source, made)


def test_the_hub_describes_and_serves_files():
    sets = stand_ins.repositories()
    name = "openai/gsm8k"
    with data_hub.hub(sets) as hub, httpx.Client(base_url=hub.url) as client:
        described = client.get(f"/api/datasets/{name}").json()
        assert {"rfilename": "train.jsonl"} in described["siblings"]
        tree = client.get(f"/api/datasets/{name}/tree/{described['sha']}?recursive=false").json()
        assert {one["path"]: one["size"] for one in tree} == {path: len(text) for path, text in sets[name].items()}
        paths = client.post(f"/api/datasets/{name}/paths-info/main", json={"paths": ["test.jsonl", "absent"]}).json()
        assert [one["path"] for one in paths] == ["test.jsonl"]
        file = f"/datasets/{name}/resolve/{described['sha']}/test.jsonl"
        head = client.head(file)
        assert head.headers["x-repo-commit"] == described["sha"]
        assert int(head.headers["content-length"]) == len(sets[name]["test.jsonl"])
        assert client.get(file).content == sets[name]["test.jsonl"]
        assert client.get(f"/datasets/{name}/resolve/main/absent").headers["x-error-code"] == "EntryNotFound"
        assert client.get("/api/datasets/no/such").headers["x-error-code"] == "RepoNotFound"
        assert client.get("/no/such/resolve/main/config.json").headers["x-error-code"] == "RepoNotFound"


def test_models_come_from_the_server(server):
    with data_hub.hub({}, server.url) as hub, httpx.Client(base_url=hub.url) as client:
        for path in (f"/{TINY}/resolve/main/tokenizer.json", f"/{TINY}/resolve/main/absent.json"):
            there, here = (httpx.get(f"{server.url}/hf{path}"), client.get(path))
            assert (here.status_code, here.content) == (there.status_code, there.content)
            head = client.head(path)
            for header in ("etag", "x-repo-commit", "x-error-code"):
                assert here.headers.get(header) == head.headers.get(header) == there.headers.get(header)
