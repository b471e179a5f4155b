"""Data that the checks make: conversations in Pig Latin, pairs of answers, sums."""

import base64
import json
import pathlib
import random
import sys

WORDS = [
    "river",
    "mountain",
    "window",
    "garden",
    "pencil",
    "silver",
    "butter",
    "summer",
    "winter",
    "candle",
    "basket",
    "dragon",
    "market",
    "planet",
    "rocket",
    "ladder",
    "bottle",
    "forest",
    "carpet",
    "hammer",
    "jacket",
    "kitten",
    "lemon",
    "mirror",
    "needle",
    "orange",
    "pepper",
    "rabbit",
    "saddle",
    "tunnel",
    "velvet",
    "wagon",
    "zebra",
    "bridge",
    "closet",
    "dinner",
    "engine",
    "falcon",
    "ginger",
    "helmet",
    "island",
    "jungle",
    "kettle",
    "lizard",
    "magnet",
    "napkin",
    "oyster",
    "palace",
    "quartz",
    "ribbon",
    "shadow",
    "temple",
    "violin",
    "walnut",
    "yellow",
    "zipper",
    "anchor",
    "beacon",
    "cactus",
    "donkey",
]
VOWELS = "aeiou"
HELD_OUT = 16


def pig_latin(word: str) -> str:
    """Moves the first consonants to the end and adds "ay"."""
    start = next((at for at, letter in enumerate(word) if letter in VOWELS), 0)
    return f"{word[start:]}{word[:start]}ay"


def question(word: str) -> list[dict]:
    return [
        {"role": "system", "content": "Answer with one word of Pig Latin."},
        {"role": "user", "content": f"Translate: {word}"},
    ]


def conversation(word: str) -> dict:
    return {"messages": [*question(word), {"role": "assistant", "content": pig_latin(word)}]}


def pair(word: str) -> dict:
    """Returns a pair: the preferred answer, and a wordy one."""
    rejected = f"Sure! In Pig Latin, the word {word} would be something like {word}."
    return {"prompt": question(word), "chosen": pig_latin(word), "rejected": rejected}


def addition(left: int, right: int) -> dict:
    """Returns a prompt in the form of the environment `arithmetic`."""
    system = {"role": "system", "content": "Answer with a number alone."}
    return {"messages": [system, {"role": "user", "content": f"What is {left} + {right}?"}]}


def write(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """Writes all data sets, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    train, held_out = WORDS[HELD_OUT:], WORDS[:HELD_OUT]
    sums = [addition(left, right) for left in range(10) for right in range(10)]
    # Every sixth: all left terms and all right ones are among them.
    held_out_sums = sums[::6][:HELD_OUT]
    sets = {
        "chats": [conversation(word) for word in train],
        "held_out_chats": [conversation(word) for word in held_out],
        "pairs": [pair(word) for word in train],
        "held_out_pairs": [pair(word) for word in held_out],
        "sums": [one for one in sums if one not in held_out_sums],
        "held_out_sums": held_out_sums,
    }
    paths = {}
    for name, records in sets.items():
        paths[name] = folder / f"{name}.jsonl"
        paths[name].write_text("".join(json.dumps(record) + "\n" for record in records))
    return paths


def guesses(path: pathlib.Path, most: int) -> pathlib.Path:
    """Writes pictures of the environment `counting`; four of ten answers are random numbers, so that little can be
    learned."""
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "src"))
    from trainyard.recipes.envs.counting import Counting

    suite, guess = Counting(most=most), random.Random("guesses")
    lines = []
    for index in range(512):
        task = suite.make(index)
        (message,) = task.reset()
        image, question = message["content"]
        url = f"data:image/png;base64,{base64.b64encode(image['image']).decode()}"
        asked = [{"type": "image_url", "image_url": {"url": url}}, question]
        answer = {"role": "assistant", "content": str(task.count if guess.random() < 0.6 else guess.randint(1, most))}
        lines.append(json.dumps({"messages": [{"role": "user", "content": asked}, answer]}) + "\n")
    path.write_text("".join(lines))
    return path
