"""Makes objects that the cookbook's programs load by name: small data sets, and a model with tokens for thoughts.

Data sets have the columns and splits of the public ones, but their own texts, made only from a seed.
"""

import json
import pathlib
import random
import struct
from collections.abc import Callable, Iterable

import rows

ITEMS = ["apples", "pencils", "stamps", "marbles", "books", "coins", "shells", "tickets"]
NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana"]
COLOURS = ["red", "green", "blue", "yellow", "white", "black"]
SENTENCES = [
    "The train leaves the station at noon and arrives in the evening.",
    "Der Zug fährt um zwölf Uhr ab und kommt am Abend an.",
    "Le train part de la gare à midi et arrive dans la soirée.",
    "El tren sale de la estación a mediodía y llega por la tarde.",
]


def conversation(rng: random.Random) -> dict:
    """Returns a row of `HuggingFaceH4/no_robots`."""
    name, colour, item = rng.choice(NAMES), rng.choice(COLOURS), rng.choice(ITEMS)
    prompt = f"{name} has {colour} {item}. What colour are they?"
    messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": f"They are {colour}."}]
    row_id = f"{rng.getrandbits(64):016x}"
    return {"prompt": prompt, "prompt_id": row_id, "messages": messages, "category": "Closed QA"}


def problem(rng: random.Random) -> dict:
    """Returns a row of `openai/gsm8k`: the answer ends with the number after `####`.

    The question only asks for a copy: a small model earns a reward with about one sample of ten, and without any reward
    nothing would be trained.
    """
    number = rng.randint(2, 9)
    boxed = f"\\boxed{{{number}}}"
    question = f"Say {boxed}. Your answer is {boxed}. The answer is {boxed}."
    return {"question": question, "answer": f"That is {number}.\n#### {number}"}


def pair(rng: random.Random) -> dict:
    """Returns a row of `Anthropic/hh-rlhf`: two conversations that differ in the last answer."""
    name, colour, item = rng.choice(NAMES), rng.choice(COLOURS), rng.choice(ITEMS)
    prompt = f"\n\nHuman: What colour are the {colour} {item} of {name}?\n\nAssistant:"
    return {"chosen": f"{prompt} They are {colour}.", "rejected": f"{prompt} That is none of my business, ask {name}."}


Row = Callable[[random.Random], dict]

# By name and configuration: what makes a row, and the number of rows of each split.
SETS: dict[str, dict[str, tuple[Row, dict[str, int]]]] = {
    "HuggingFaceH4/no_robots": {"default": (conversation, {"train": 256, "test": 128})},
    "openai/gsm8k": {"main": (problem, {"train": 6, "test": 4})},
    "Anthropic/hh-rlhf": {"default": (pair, {"train": 48, "test": 16})},
    **rows.SETS,
}


def file_of(configurations: Iterable[str], configuration: str, split: str) -> str:
    """Returns the file of a split; configurations are in its name only where there are several."""
    return f"{split}.jsonl" if len(list(configurations)) == 1 else f"{configuration}-{split}.jsonl"


def card(configurations: dict[str, tuple[Row, dict[str, int]]]) -> str:
    """Returns the front page, whose header maps splits to files."""
    header = {
        "configs": [
            {
                "config_name": name,
                "data_files": [{"split": split, "path": file_of(configurations, name, split)} for split in splits],
            }
            for name, (_, splits) in configurations.items()
        ]
    }
    # JSON is valid YAML.
    return f"---\n{json.dumps(header)}\n---\nMade by tests/cookbook/stand_ins.py.\n"


def repositories() -> dict[str, dict[str, bytes]]:
    """Returns the files of all data sets by name; the same on every call."""
    made = {}
    for name, configurations in SETS.items():
        rng = random.Random(name)
        files = {"README.md": card(configurations).encode()}
        for configuration, (row, splits) in configurations.items():
            for split, count in splits.items():
                lines = "".join(json.dumps(row(rng)) + "\n" for _ in range(count))
                files[file_of(configurations, configuration, split)] = lines.encode()
        made[name] = files
    return made


def files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """Writes files that programs read; returns those by name that are not at fixed places below the working folder."""
    example_data = folder / "tinker_cookbook" / "example_data"
    example_data.mkdir(parents=True, exist_ok=True)
    (example_data / "multilingual.txt").write_text("".join(f"{sentence}\n" for sentence in SENTENCES), encoding="utf-8")
    task = folder / ".cache" / "harbor" / "tasks" / "stand-in" / "one"
    (task / "tests").mkdir(parents=True, exist_ok=True)
    (task / "instruction.md").write_text("Write hello into a file.")
    (task / "task.toml").write_text("")
    (task / "tests" / "test.sh").write_text("exit 1\n")
    job = {"log_relpath": "job", "entrypoint": "tinker_cookbook.xmux.examples.fake_train:main"}
    settings = {"model": "none", "lr": 0.1, "duration": 0, "failure_rate": 0.0}
    made = {
        "job": (folder / "job.json", json.dumps({**job, "entrypoint_config": settings})),
        "labelled": (folder / "labelled.jsonl", labelled()),
        "rubrics": (folder / "rubrics.jsonl", rubrics()),
        "forecasts": (folder / "forecasts.csv", rows.forecasts()),
    }
    for path, content in made.values():
        path.write_text(content, encoding="utf-8")
    return {name: path for name, (path, _) in made.items()}


def labelled() -> str:
    """Returns conversations that name the language of a sentence."""
    rows = [
        [{"role": "user", "content": sentence}, {"role": "assistant", "content": language}]
        for sentence, language in zip(SENTENCES, ["en", "de", "fr", "es"], strict=True)
    ]
    return "".join(json.dumps({"messages": row}) + "\n" for row in rows * 4)


def rubrics() -> str:
    """Returns questions with what a judge should look for."""
    rubric = {
        "rubric_str": "Is it right?",
        "extraction_regex": "<score>(.*?)</score>",
        "grader_output_format_instruction": "Say <score>0</score> or <score>1</score>.",
    }
    asked = [[{"role": "user", "content": f"What is {number} + 1?"}] for number in range(8)]
    return "".join(json.dumps({"convo": convo, "rubric_items": [rubric]}) + "\n" for convo in asked)


def strings(*words: bytes) -> bytes:
    """Encodes texts as in an array of a GGUF file."""
    return b"".join(struct.pack("<Q", len(word)) + word for word in words)


UNUSED = strings(b"<jupyter_output>", b"<jupyter_script>", b"<empty_output>")
THOUGHTS = strings(b"<think>", b"</think>", b"<unused".ljust(30, b"_") + b">")


def thinking_model(source: pathlib.Path, destination: pathlib.Path) -> pathlib.Path:
    """Copies the test model with two special tokens renamed that its training did not use.

    Chat formats of Qwen3.5 need `<think>` and `</think>` to be one token each. The names together keep their length, so
    that nothing else in the file moves.
    """
    content = source.read_bytes()
    if content.count(UNUSED) != 1 or len(UNUSED) != len(THOUGHTS):
        raise ValueError(f"{source} is not the test model: it lacks the special tokens of SmolLM2")
    destination.write_bytes(content.replace(UNUSED, THOUGHTS))
    return destination
