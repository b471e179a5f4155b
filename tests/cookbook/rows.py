"""Rows of the data sets that programs on tiny models load: short, with the columns of the public ones that are read."""

import csv
import io
import json
import random
from collections.abc import Callable

WORDS = "the time of a ship and its crew was short so they left the harbour at dawn with time to spare".split()
LETTERS = "ABCD"


def sentence(rng: random.Random, words: int = 12) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words)).capitalize() + "."


def turns(rng: random.Random) -> dict:
    """Returns a row of `allenai/tulu-3-sft-mixture`."""
    word = rng.choice(WORDS)
    return {
        "id": f"{rng.getrandbits(32):08x}",
        "messages": [{"role": "user", "content": f"Say {word}."}, {"role": "assistant", "content": word}],
        "source": "stand-in",
    }


def thoughts(rng: random.Random) -> dict:
    """Returns a row of `open-thoughts/OpenThoughts3-1.2M`."""
    word = rng.choice(WORDS)
    said = [{"from": "human", "value": f"Say {word}."}, {"from": "gpt", "value": f"<think>\n{word}\n</think>\n{word}"}]
    return {"conversations": said, "domain": "math", "source": "stand-in", "difficulty": 1}


def sum_(rng: random.Random) -> tuple[str, str]:
    left, right = rng.randint(0, 9), rng.randint(0, 9)
    return f"{left} + {right} = ?", str(left + right)


def deep_math(rng: random.Random) -> dict:
    """Returns a row of `zwhe99/DeepMath-103K`."""
    question, answer = sum_(rng)
    return {"question": question, "final_answer": answer, "difficulty": 1.0, "topic": "Arithmetic"}


def competition(rng: random.Random) -> dict:
    """Returns a row of `HuggingFaceH4/MATH-500`."""
    question, answer = sum_(rng)
    solution = f"It is $\\boxed{{{answer}}}$."
    names = {"subject": "Algebra", "level": 1, "unique_id": f"{rng.getrandbits(32):08x}"}
    return {"problem": question, "solution": solution, "answer": answer, **names}


def article(rng: random.Random) -> dict:
    """Returns a row of `Salesforce/wikitext`: a paragraph."""
    return {"text": " ".join(sentence(rng, 40) for _ in range(20)) + "\n"}


def code(rng: random.Random) -> dict:
    """Returns a row of `agentica-org/DeepCoder-Preview-Dataset`."""
    number = rng.randint(0, 9)
    tests = [{"input": f"{number}\n", "output": f"{number}\n", "testtype": "stdin_stdout"}]
    return {"problem": "Print the number that is read.", "solutions": ["print(input())"], "tests": json.dumps(tests)}


def feedback(rng: random.Random) -> dict:
    """Returns a row of `prometheus-eval/Feedback-Collection`."""
    scores = {f"orig_score{score}_description": f"{score} of 5" for score in range(1, 6)}
    question, answer = sum_(rng)
    return {"orig_instruction": question, "orig_criteria": "Is it right?", "orig_reference_answer": answer, **scores}


def science(rng: random.Random) -> dict:
    """Returns a row of `hicai-zju/SciKnowEval`."""
    choices = {"label": list(LETTERS), "text": [sentence(rng, 2) for _ in LETTERS]}
    details = {"level": "L3", "task": "stand-in", "subtask": "stand-in", "source": "stand-in"}
    return {
        "domain": "Chemistry", "details": details, "type": "mcq-4-choices", "question": sentence(rng, 6),
        "choices": choices, "answerKey": rng.choice(LETTERS),
    }  # fmt: skip


def tool_use(rng: random.Random) -> dict:
    """Returns a row of `tangqiaoyu/ToolAlpaca`."""
    word = rng.choice(WORDS)
    return {"instruction": f"Look up {word}.", "output": f'Action: look_up\nAction Input: {{"word": "{word}"}}'}


Row = Callable[[random.Random], dict]
# As in stand_ins.py.
SETS: dict[str, dict[str, tuple[Row, dict[str, int]]]] = {
    # The first 1,024 are held out.
    "allenai/tulu-3-sft-mixture": {"default": (turns, {"train": 1100})},
    "open-thoughts/OpenThoughts3-1.2M": {"default": (thoughts, {"train": 64})},
    "zwhe99/DeepMath-103K": {"default": (deep_math, {"train": 16})},
    "HuggingFaceH4/MATH-500": {"default": (competition, {"test": 4})},
    "Salesforce/wikitext": {"wikitext-103-raw-v1": (article, {"train": 40})},
    "agentica-org/DeepCoder-Preview-Dataset": {
        "primeintellect": (code, {"train": 4}),
        "taco": (code, {"train": 4}),
        "lcbv5": (code, {"train": 4, "test": 2}),
        "codeforces": (code, {"test": 2}),
    },
    "prometheus-eval/Feedback-Collection": {"default": (feedback, {"train": 8})},
    "hicai-zju/SciKnowEval": {"default": (science, {"test": 20})},
    "tangqiaoyu/ToolAlpaca": {"default": (tool_use, {"train": 20})},
}


def forecasts() -> str:
    """Returns the table of Prophet Arena: events before and after the day on which the recipes split it."""
    text = io.StringIO()
    columns = ["submission_id", "event_ticker", "title", "snapshot_time", "close_time", "market_outcome", "category"]
    table = csv.DictWriter(text, [*columns, "markets", "sources"])
    table.writeheader()
    for at in range(24):
        month = "09" if at < 16 else "11"
        market, outcome = f"number {at} is even", 1 - at % 2
        table.writerow(
            {
                "submission_id": f"s{at}", "event_ticker": f"E{at}", "title": f"Is {at} even?",
                "snapshot_time": f"2025-{month}-01T00:00:00Z", "close_time": f"2025-{month}-02T00:00:00Z",
                "market_outcome": json.dumps({market: outcome}), "category": "numbers",
                "markets": json.dumps([market]),
                "sources": json.dumps([{"title": "Numbers", "summary": "Every other one is even.", "ranking": 1}]),
            }
        )  # fmt: skip
    return text.getvalue()
