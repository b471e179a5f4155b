"""Data sets in the forms of the package `datasets`: pictures, drawn from a seed, and Arrow folders.

Needs the packages `datasets` and Pillow, which the cookbook installs.
"""

import io
import pathlib
import random

import rows

# By name: the seed.
SEEDS = {"dpdl-benchmark/caltech101": 0, "dpdl-benchmark/oxford_flowers102": 1}
LABELS = {"sun": (250, 200, 40), "sea": (20, 60, 200)}
TRAINING, HELD_OUT = 20, 16
SIDE = 48


def picture(rng: random.Random, colour: tuple[int, int, int]):
    """Draws a disc of about this colour somewhere on a grey ground."""
    from PIL import Image, ImageDraw

    ground = rng.randint(60, 200)
    image = Image.new("RGB", (SIDE, SIDE), (ground, ground, ground))
    radius = rng.randint(SIDE // 5, SIDE // 3)
    x, y = (rng.randint(radius, SIDE - radius) for _ in range(2))
    shade = tuple(max(0, min(255, part + rng.randint(-20, 20))) for part in colour)
    ImageDraw.Draw(image).ellipse((x - radius, y - radius, x + radius, y + radius), fill=shade)
    return image


def split(seed: int, name: str, count: int) -> bytes:
    """Returns a parquet file of pictures with their labels, as many of each."""
    import datasets

    rng = random.Random(f"{seed}/{name}")
    labels = [at % len(LABELS) for at in range(count)]
    columns = {"image": [picture(rng, list(LABELS.values())[label]) for label in labels], "label": labels}
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=list(LABELS))})
    content = io.BytesIO()
    datasets.Dataset.from_dict(columns, features=features).to_parquet(content)
    return content.getvalue()


def repositories() -> dict[str, dict[str, bytes]]:
    """Returns the files of all data sets by name."""
    return {
        name: {
            f"{part}-00000-of-00001.parquet": split(seed, part, count)
            for part, count in (("train", TRAINING), ("test", HELD_OUT))
        }
        for name, seed in SEEDS.items()
    }


def files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """Writes files that programs read; returns them by name."""
    drawn = folder / "picture.png"
    picture(random.Random("picture"), LABELS["sun"]).save(drawn)
    return {"arrow": arrow(folder / "arrow"), "picture": drawn}


def arrow(folder: pathlib.Path) -> pathlib.Path:
    """Writes the questions that the programs of `sdft` read from Arrow folders."""
    import datasets

    rng = random.Random("arrow")
    learned = [
        {
            "messages": [{"role": "system", "content": "Answer."}, {"role": "user", "content": rows.sentence(rng, 4)}],
            "output_text": "<reasoning>So.</reasoning>\n<answer>A</answer>",
        }
        for _ in range(8)
    ]
    asked = [{"prompt": row["messages"], "answer": rng.choice(rows.LETTERS)} for row in learned[:2]]
    used = [{"prompt": rows.sentence(rng, 4), "golden_response": ["Action: look_up"]} for _ in range(8)]
    judged = [
        {"prompt": row["prompt"], "golden_answer": [{"Action": "look_up", "Action_Input": "{}"}]} for row in used[:2]
    ]
    for name, training, held_out in (("science_data", learned, asked), ("tooluse_data", used, judged)):
        datasets.Dataset.from_list(training).save_to_disk(folder / name / "train_data")
        datasets.Dataset.from_list(held_out).save_to_disk(folder / name / "eval_data")
    return folder
