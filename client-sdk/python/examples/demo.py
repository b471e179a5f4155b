"""Both examples, then a checkpoint that is saved, loaded into a new run and compared, in a few minutes.

    TINKER_BASE_URL=http://127.0.0.1:8000 TINKER_API_KEY=tml-local HF_ENDPOINT=$TINKER_BASE_URL/hf python demo.py [PART …] [--steps N]

Parts are supervised, reinforcement and reload, which begins with supervised; without any, all of them run. Ends with 0 only
if the loss fell, the reward rose and the reload agreed to the last bit.
"""

import argparse
import sys
import time

import tinker

import reinforcement
import supervised
from common import base_model


def logprobs(run: tinker.TrainingClient, data) -> list[list[float]]:
    return [output["logprobs"].data for output in run.forward(data, "cross_entropy").result().loss_fn_outputs]


def reload(service: tinker.ServiceClient, run: tinker.TrainingClient, data) -> dict:
    """Saves weights and optimizer state, loads them into a new run, and compares log-probabilities bit by bit."""
    path = run.save_state("demo").result().path
    copy = service.create_training_client_from_state_with_optimizer(path).result()
    old, new = logprobs(run, data), logprobs(copy, data)
    return {"path": path, "tokens": sum(map(len, old)), "equal": old == new}


def timed(seconds: dict, name: str, call):
    started = time.monotonic()
    result = call()
    seconds[name] = time.monotonic() - started
    return result


def one_line(text: str, width: int = 88) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def show(name: str, ok: bool, seconds: float, lines: list[str]) -> None:
    print(f"\n{'PASS' if ok else 'FAIL'}  {name}  ({seconds:.0f} s)")
    for line in lines:
        print(f"      {line}")


def show_supervised(taught: dict, seconds: float) -> bool:
    right = lambda answers: sum(map(str.__eq__, answers, taught["expected"]))  # noqa: E731
    before, after = taught["answers before"], taught["answers after"]
    fell = taught["loss after"] < taught["loss before"]
    show("supervised: Pig Latin, on words that were held out", fell, seconds, [
        f"loss per token   {taught['loss before']:.3f} -> {taught['loss after']:.3f}",
        f"exactly right    {right(before)} -> {right(after)} of {len(before)}",
        *(f"{w:<10} before: {one_line(b, 36):<38} after: {a}" for w, b, a in list(zip(taught["words"], before, after))[:5]),
    ])  # fmt: skip
    return fell


def show_reinforcement(learned: dict, seconds: float) -> bool:
    rose = learned["reward after"] > learned["reward before"]
    show("reinforcement: sentences of short words", rose, seconds, [
        f"mean reward      {learned['reward before']:.2f} -> {learned['reward after']:.2f}",
        "by step          " + " ".join(f"{r:.2f}" for r in learned["rewards"]),
        f"first: {one_line(learned['sample before'])}",
        f"last:  {one_line(learned['sample after'])}",
    ])  # fmt: skip
    return rose


def show_reload(loaded: dict, seconds: float) -> bool:
    show("reload: a checkpoint in a new run", loaded["equal"], seconds, [
        f"{loaded['tokens']} log-probabilities {'equal to the last bit' if loaded['equal'] else 'DIFFER'}",
        loaded["path"],
    ])  # fmt: skip
    return loaded["equal"]


PARTS = {"supervised": show_supervised, "reinforcement": show_reinforcement, "reload": show_reload}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="demo.py")
    parser.add_argument("part", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--steps", type=int, help="steps of each training, at least 3")
    options = parser.parse_args(words)
    if unknown := set(options.part) - set(PARTS):
        parser.error(f"unknown part {sorted(unknown)[0]!r}: expected {', '.join(PARTS)}")
    if options.steps is not None and options.steps < 3:
        parser.error(f"--steps {options.steps}: expected at least 3")
    chosen = options.part or list(PARTS)
    steps = {"steps": options.steps} if options.steps else {}
    seconds: dict[str, float] = {}
    reports: dict[str, dict] = {}
    model = base_model()
    with tinker.ServiceClient() as service:
        if {"supervised", "reload"} & set(chosen):
            run, taught = timed(seconds, "supervised", lambda: supervised.train(service, model, **steps))
            reports["supervised"] = taught
        if "reinforcement" in chosen:
            learn = lambda: reinforcement.train(service, model, **steps)  # noqa: E731
            reports["reinforcement"] = timed(seconds, "reinforcement", learn)
        if "reload" in chosen:
            reports["reload"] = timed(seconds, "reload", lambda: reload(service, run, taught["test"]))
    passed = all([PARTS[name](report, seconds[name]) for name, report in reports.items()])
    print(f"\n{'Passed' if passed else 'FAILED'} in {sum(seconds.values()):.0f} s with {model}.")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
