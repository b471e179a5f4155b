"""Makes objects that the cookbook's programs load by name: small data sets, and a model with tokens for thoughts.

Data sets have the columns and splits of the public ones, but their own texts, made only from a seed.
"""

import json
import pathlib
import random
import struct

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


# Configuration, row maker and number of rows of each split, by name.
SETS = {
    "HuggingFaceH4/no_robots": ("default", conversation, {"train": 256, "test": 128}),
    "openai/gsm8k": ("main", problem, {"train": 6, "test": 4}),
    "Anthropic/hh-rlhf": ("default", pair, {"train": 48, "test": 16}),
}


def card(configuration: str, splits: list[str]) -> str:
    """Returns the front page, whose header maps splits to files."""
    header = {
        "configs": [
            {
                "config_name": configuration,
                "data_files": [{"split": split, "path": f"{split}.jsonl"} for split in splits],
            }
        ]
    }
    # JSON is valid YAML.
    return f"---\n{json.dumps(header)}\n---\nMade by tests/cookbook/stand_ins.py.\n"


def repositories() -> dict[str, dict[str, bytes]]:
    """Returns the files of all data sets by name; the same on every call."""
    made = {}
    for name, (configuration, row, splits) in SETS.items():
        rng = random.Random(name)
        files = {"README.md": card(configuration, list(splits)).encode()}
        for split, rows in splits.items():
            files[f"{split}.jsonl"] = "".join(json.dumps(row(rng)) + "\n" for _ in range(rows)).encode()
        made[name] = files
    return made


def prompt_distillation(folder: pathlib.Path) -> pathlib.Path:
    """Writes the inputs of prompt distillation: sentences below the working folder, and labelled conversations."""
    sentences = folder / "tinker_cookbook" / "example_data" / "multilingual.txt"
    sentences.parent.mkdir(parents=True, exist_ok=True)
    sentences.write_text("".join(f"{sentence}\n" for sentence in SENTENCES), encoding="utf-8")
    labelled = folder / "labelled.jsonl"
    rows = [
        [{"role": "user", "content": sentence}, {"role": "assistant", "content": language}]
        for sentence, language in zip(SENTENCES, ["en", "de", "fr", "es"], strict=True)
    ]
    labelled.write_text("".join(json.dumps({"messages": row}) + "\n" for row in rows * 4), encoding="utf-8")
    return labelled


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
