"""Supervised fine-tuning with LoRA: teach a language model Pig Latin.

    TINKER_BASE_URL=http://127.0.0.1:8000 TINKER_API_KEY=tml-local HF_ENDPOINT=$TINKER_BASE_URL/hf python supervised.py

Pig Latin moves a word's first consonants to its end and adds "ay": river -> iverray, apple -> appleay.
"""

import random

import tinker
from tinker import types
from tqdm import tqdm

from common import base_model, chat_prompt, target_loss

WORDS = """
ant bag ball band bank barn bath beach bean bear bed bell bench bike bird boat bone book boot bowl box boy bread brick
bridge broom brush bus cage cake camp can candle cap car card cart castle cat chain chair chalk cheese chest chick child
chin clock cloth cloud clown coal coat coin cold cook cork corn cow crab crib crow crown cub cup dart day deer desk dish
dog doll door dove dragon dream dress drum duck dust ear earth egg end eye face fan farm fire fish flag flame floor
flower fly foot fork fox frog fruit game garden gate ghost giant gift girl glass glove goat gold grape grass hall hand
hat hen hill hole home hook horse house ice ink island jam jar jelly joke judge jump key king kite knee knife lake lamp
land leaf leg letter light line lion lip list lock log lunch map mask match meal meat milk mill mind mine mint mist money
moon mouse mouth nail name neck needle nest net night noise nose note nut oak ocean oil orange oven owl page pail paint
pan paper park path peach pear pen pencil pet pie pig pin pipe plane plant plate play pond pool pot prize queen quilt
rabbit rain rat ring river road robin rock roof room root rope rose sack sail salt sand scarf school sea seat seed ship
shirt shoe shop silk sister skate sky sleep smile smoke snail snake snow soap sock song soup spark spoon spot spring star
steam stem step stick stone store storm stove straw street string sun swan swim swing table tail tank tent thread thumb
ticket tiger time toad toe tooth town toy track trail train tray tree truck tub turkey umbrella uncle van vase vest view
voice wall watch water wave wax web wheel whip wind window wing winter wish wolf wood wool word work worm yard year zoo
""".split()

SYSTEM = "Pig Latin"
HELD_OUT, STEPS, BATCH = 32, 30, 24


def pig_latin(word: str) -> str:
    start = next(i for i, letter in enumerate(word) if letter in "aeiouy" and (i or letter != "y"))
    return word[start:] + word[:start] + "ay"


def example(tokenizer, word: str) -> types.Datum:
    """Returns an example: all tokens but the last are input, all but the first are targets; only those of the answer
    have weight."""
    question = chat_prompt(tokenizer, SYSTEM, word)
    answer = tokenizer.encode(pig_latin(word) + tokenizer.eos_token)
    tokens = question + answer
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={
            "target_tokens": tokens[1:],
            "weights": [0.0] * (len(question) - 1) + [1.0] * len(answer),
        },
    )


def answers(run: tinker.TrainingClient, tokenizer, words: list[str]) -> list[str]:
    """Returns the run's most likely answer to each word, sampled from a snapshot of its weights."""
    sampler = run.save_weights_and_get_sampling_client().result()
    greedy = types.SamplingParams(max_tokens=8, temperature=0.0)
    prompts = [types.ModelInput.from_ints(chat_prompt(tokenizer, SYSTEM, word)) for word in words]
    pending = [sampler.sample(prompt, 1, greedy) for prompt in prompts]
    return [tokenizer.decode(p.result().sequences[0].tokens, skip_special_tokens=True).strip() for p in pending]


def train(service: tinker.ServiceClient, model: str, steps: int = STEPS) -> tuple[tinker.TrainingClient, dict]:
    run = service.create_lora_training_client(model, rank=32, seed=0, train_unembed=False).result()
    tokenizer = run.get_tokenizer()
    words = random.Random(0).sample(WORDS, len(WORDS))
    held_out, words = words[:HELD_OUT], words[HELD_OUT:]
    test = [example(tokenizer, word) for word in held_out]
    report = {"loss before": target_loss(run, test), "answers before": answers(run, tokenizer, held_out)}

    order = random.Random(1).choices(words, k=steps * BATCH)
    bar = tqdm(range(steps), desc="supervised", unit="step")
    for step in bar:
        batch = [example(tokenizer, word) for word in order[step * BATCH : (step + 1) * BATCH]]
        result = run.forward_backward(batch, "cross_entropy")
        # The step is submitted without waiting for the gradient: the server executes requests in order.
        rate = 1e-3 * (1 - step / steps)
        run.optim_step(types.AdamParams(learning_rate=rate, eps=1e-8))
        targets = sum(sum(d.loss_fn_inputs["weights"].data) for d in batch)
        bar.set_postfix(loss=f"{result.result().metrics['loss:sum'] / targets:.2f}")

    report |= {"loss after": target_loss(run, test), "answers after": answers(run, tokenizer, held_out)}
    report |= {"words": held_out, "expected": [pig_latin(word) for word in held_out], "test": test}
    return run, report


if __name__ == "__main__":
    with tinker.ServiceClient() as service:
        _, report = train(service, base_model())
    print(f"held-out loss per token: {report['loss before']:.3f} -> {report['loss after']:.3f}")
    columns = ("words", "expected", "answers before", "answers after")
    for word, expected, before, after in zip(*(report[c] for c in columns)):
        # Before training an answer may have several lines.
        before, after = (" ".join(text.split()) for text in (before, after))
        print(f"  {word:<10} expected {expected:<12} before {before:<24.24} after {after}")
