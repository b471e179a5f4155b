"""Images in the recipes: in records and in observations, to the server and back, and what is refused."""

import base64
import json
import pathlib
import struct

import pytest

import chat_model
import folders
import vision_model
from helpers import KEY
from pictures import png
from recipes import metrics, settings
from server import GOLDEN, TINY_MODELS

from trainyard.recipes import agent_env, dpo, grpo, sft  # isort: skip
from trainyard.recipes.core import data, datums, image_sizes, images  # isort: skip
from trainyard.recipes.core.agents import Session  # isort: skip
from trainyard.recipes.core.chat import Chat, messages_of  # isort: skip
from trainyard.recipes.core.config import ConfigError  # isort: skip
from trainyard.recipes.core.rollout import Limits, Sampled  # isort: skip
from trainyard.recipes.envs import Environment, Outcome  # isort: skip
from trainyard.recipes.envs.counting import Counting  # isort: skip

FOLDER = vision_model.write(folders.new() / "tiny-vision")
MODELS = TINY_MODELS | {vision_model.NAME: FOLDER}
RL = {"groups": 2, "group_size": 2, "limits.max_tokens": 6, "eval_tasks": 1}
COLUMNS, ROWS = 3, 2
DATA_URI = f"data:image/png;base64,{base64.b64encode(png(COLUMNS, ROWS)).decode()}"

# The smallest JPEG file as far as its header: an application segment, then a frame of 20 rows and 30 columns.
JPEG = b"\xff\xd8\xff\xe0\x00\x04\x00\x00\xff\xc0\x00\x11\x08" + struct.pack(">HH", 20, 30) + b"\x03" * 12


@pytest.fixture
def environment(server, monkeypatch):
    monkeypatch.setenv("TINKER_BASE_URL", server.url)
    monkeypatch.setenv("TINKER_API_KEY", KEY)


@pytest.fixture(scope="module")
def chat():
    return Chat(chat_model.tokenizer(FOLDER), lambda: images.Vision.load(str(FOLDER)))


def finished(recipe, folder, **more):
    """Runs a recipe to its end on the model with a tower; returns its metrics."""
    assert recipe.cli(settings(folder, FOLDER, model=vision_model.NAME, **more)) == 0
    return metrics(folder)


def asked(source, text="What is it?", kind="image"):
    """A question about an image."""
    part = {"type": "image_url", "image_url": {"url": source}} if kind == "image_url" else {"type": kind, kind: source}
    return {"role": "user", "content": [part, {"type": "text", "text": text}]}


def answered(message, answer="a square"):
    return [message, {"role": "assistant", "content": answer}]


def records(folder: pathlib.Path) -> pathlib.Path:
    """A data set with all forms of images that a JSON file can have; paths begin at its folder."""
    (folder / "pictures").mkdir()
    (folder / "pictures" / "a.png").write_bytes(png(COLUMNS, ROWS))
    rows = [
        {"messages": answered(asked("pictures/a.png"))},
        {"messages": answered(asked(DATA_URI, kind="image_url"))},
        {"messages": answered({"role": "user", "content": "<image>What is it?"}), "images": ["pictures/a.png"]},
        {"prompt": "<image>What is it?", "completion": "a square", "images": [{"path": "pictures/a.png"}]},
    ]
    path = folder / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_all_forms_of_images_give_the_same_tokens(tmp_path, chat, monkeypatch):
    path = records(tmp_path)
    monkeypatch.chdir("/")
    examples = [chat.example(messages_of(record)) for record in data.read(str(path))]
    assert len({tuple(one.tokens) for one in examples}) == 1
    (first, *_) = examples
    chunks = datums.supervised(first).model_input.chunks
    assert [chunk.type for chunk in chunks] == ["encoded_text", "image", "encoded_text"]
    assert chunks[1].data == png(COLUMNS, ROWS) and chunks[1].expected_tokens == COLUMNS * ROWS
    # Nothing is learned at the positions of an image, and each target is the token after its position.
    trained = [token for token, weight in zip(first.tokens, first.weights, strict=True) if weight]
    assert chat.decode(trained) == "a square"
    assert sum(isinstance(token, images.Position) for token in first.tokens) == COLUMNS * ROWS


@pytest.mark.parametrize("kind", ["bytes", "Pillow", "datasets"])
def test_images_in_memory(chat, kind):
    class Pillow:
        """What is used of an image of Pillow."""

        def save(self, file, format):
            assert format == "PNG"
            file.write(png(COLUMNS, ROWS))

    file = png(COLUMNS, ROWS)
    sources = {"bytes": file, "Pillow": Pillow(), "datasets": {"bytes": file, "path": None}}
    tokens = chat.prompt([asked(sources[kind])])
    assert images.model_input(tokens).chunks[1].data == file


def test_an_example_is_never_cut_inside_an_image(chat):
    example = chat.example(answered(asked(DATA_URI)))
    at = next(at for at, token in enumerate(example.tokens) if isinstance(token, images.Position))
    for length in range(at, at + COLUMNS * ROWS + 1):
        assert len(example.cut(length).tokens) == at
    assert len(example.cut(at + COLUMNS * ROWS + 1).tokens) == at + COLUMNS * ROWS + 1


def test_sizes_and_counts():
    assert images.size_of(png(COLUMNS, ROWS)) == (COLUMNS * 16, ROWS * 16)
    assert images.size_of(JPEG) == (30, 20) and images.format_of(JPEG) == "jpeg"
    released = image_sizes.Qwen(32, 65_536, 16_777_216)
    # Computed with `smart_resize` of transformers.
    sizes = {(1, 1): (256, 256), (400, 300): (384, 288), (8000, 4000): (5792, 2880), (33, 65): (192, 384)}
    for size, (width, height) in sizes.items():
        assert released.count(*size) == width * height // 32**2


def test_kimi_pads_images_to_whole_positions():
    processor = "Kimi_K25ImageProcessor"
    released = image_sizes.sizes({"media_proc_cfg": {"patch_size": 14, "merge_kernel_size": 2}})
    assert released == image_sizes.sizes({"image_processor_type": processor}) == image_sizes.Kimi(14, 2, 16_384, 512)
    # Computed with `navit_resize` of transformers.
    sizes = {(1, 1): (28, 28), (400, 300): (420, 308), (8000, 4000): (2548, 1288), (40, 10_000): (28, 7168)}
    for size, (width, height) in sizes.items():
        assert released.count(*size) == width * height // 28**2


def test_kimis_images_are_counted_as_the_reference_does():
    folder = GOLDEN / "vision" / "kimi_k25"
    vision = images.Vision.load(str(folder))
    assert vision.placeholder == 505
    expected = json.loads((folder / "golden.json").read_text())["images"]
    assert {name: vision.picture((folder / name).read_bytes()).count for name in expected} == {
        name: image["tokens"] for name, image in expected.items()
    }


def test_images_of_other_processors_are_refused_by_name(tmp_path):
    (tmp_path / "preprocessor_config.json").write_text('{"image_processor_type": "PixtralImageProcessor"}')
    (tmp_path / "config.json").write_text('{"image_token_id": 5}')
    with pytest.raises(ConfigError, match="PixtralImageProcessor, not that of Qwen or Kimi"):
        images.Vision.load(str(tmp_path))


@pytest.mark.parametrize(
    "message, text",
    [
        (asked("https://example.com/a.png"), "URLs are not fetched"),
        (asked("no/such.png"), "No such file"),
        (asked(b"GIF89a"), "neither a PNG nor a JPEG"),
        (asked("data:image/png,abc"), "expected base64"),
        (asked("data:image/png;base64,a"), "data URI"),
        (asked(7), "not int"),
        (asked(png(COLUMNS, ROWS)[:20]), "no size"),
        (asked(DATA_URI, text="<|image_pad|>"), "the token reserved for images"),
        ({"role": "user", "content": [{"type": "audio", "audio": "a.wav"}]}, "'audio' is not supported"),
    ],
)
def test_what_is_no_image_is_refused(chat, message, text):
    with pytest.raises(ConfigError, match=text):
        chat.prompt([message])


def test_marks_and_images_of_a_record_must_agree():
    question = [{"role": "user", "content": "<image><image>"}]
    with pytest.raises(ConfigError, match="more <image>"):
        images.with_images(question, ["a.png"])
    with pytest.raises(ConfigError, match="more images"):
        images.with_images(question, ["a.png"] * 3)


def test_a_model_without_a_tower_takes_no_images(tmp_path):
    folder = chat_model.write(tmp_path / "text")
    chat = Chat(chat_model.tokenizer(folder), lambda: images.Vision.load(str(folder)))
    with pytest.raises(ConfigError, match=r"preprocessor_config\.json"):
        chat.prompt([asked(DATA_URI)])


def test_agents_send_images(chat):
    """The proxy continues the sequence of a conversation with an image, and a further image follows what was sampled."""
    sampled, prompts = [*chat.encode("yes"), 1], []

    class Policy:
        def sample(self, prompt, limits, seed):
            prompts.append(list(prompt))
            return Sampled(sampled, [0.0] * len(sampled), [0] * len(sampled), True)

    session = Session(Policy(), chat, Limits(max_turns=2), 0)
    said = [asked(DATA_URI, kind="image_url")]
    said.append(session.answer({"messages": said})["choices"][0]["message"])
    session.answer({"messages": [*said, asked(DATA_URI, kind="image_url")]})
    assert len(session.conversations) == 1
    first, second = prompts
    assert second[: len(first) + len(sampled)] == first + sampled
    assert [chunk.type for chunk in images.model_input(second).chunks].count("image") == 2


def test_counting_is_the_same_every_time():
    suite = Counting()
    one, other = (suite.make(7).reset() for _ in range(2))
    assert one == other and suite.make(8).reset() != one and Counting(held_out=True).make(7).reset() != one
    task = suite.make(7)
    assert task.step(f"There are {task.count}.").reward == 1.0
    assert task.step("none").reward == 0.0 < task.step("9").reward < 0.3
    assert images.size_of(task.picture) == (32, 32)


def test_sft(environment, tmp_path):
    path = records(tmp_path)
    lines = finished(sft, tmp_path / "run", data=path, validation=path, batch_size=4, steps=6)
    assert lines[-1]["validation_loss"] < lines[0]["validation_loss_before"]


def test_dpo(environment, tmp_path):
    path = tmp_path / "pairs.jsonl"
    row = {"prompt": [asked(DATA_URI)], "chosen": "a square", "rejected": "nothing"}
    path.write_text((json.dumps(row) + "\n") * 2)
    lines = finished(dpo, tmp_path / "run", data=path, batch_size=2, steps=3)
    assert lines[-1]["loss"] < lines[0]["loss"]


class TwoLooks:
    """Tasks of two turns: a picture first, and another one in what the environment answers."""

    def __init__(self, held_out: bool = False) -> None:
        self.held_out = held_out

    def __len__(self) -> int:
        return 2

    def make(self, index: int) -> Environment:
        return Look()


class Look(Environment):
    looked = False

    def reset(self):
        return [asked(png(COLUMNS, ROWS))]

    def step(self, reply: str) -> Outcome:
        if self.looked:
            return Outcome(float(len(reply)))
        self.looked = True
        return Outcome(0.0, done=False, messages=[asked(png(ROWS, COLUMNS, 1), "And now?")])


@pytest.mark.parametrize(
    "recipe, more",
    [
        (grpo, {"environment.name": "counting"}),
        (agent_env, {"environment.name": f"{__name__}:TwoLooks", "limits.max_turns": 2, "sampling_rounds": 0}),
    ],
)
def test_reinforcement_learning(environment, tmp_path, recipe, more):
    lines = finished(recipe, tmp_path / "run", **RL, **more)
    assert [line["turns"] for line in lines] == [more.get("limits.max_turns", 1)] * 2
    # The trainer scores the first samples as the sampler did, images included.
    learned = [line for line in lines if "sampler_kl" in line]
    if learned and learned[0] is lines[0]:
        assert abs(learned[0]["sampler_kl"]) < 1e-6
