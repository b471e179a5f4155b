"""Log-probabilities of a Hugging Face model with an adapter that `peft` loads: `peft_scores.py BASE ADAPTER`.

Reads a list of tokens in JSON from its input, and writes a list of the base model's log-probabilities of each token after the first,
and of the model's with the adapter. Runs in an environment of its own, with the packages of `peft.txt`.
"""

import json
import sys

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM


def scores(model, tokens: list[int]) -> list[float]:
    ids = torch.tensor([tokens])
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0, :-1].float()
    return torch.log_softmax(logits, -1).gather(1, ids[0, 1:, None])[:, 0].tolist()


def main():
    base, adapter = sys.argv[1:]
    tokens = json.load(sys.stdin)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).eval()
    plain = scores(model, tokens)
    # A warning means that tensors of the file were left out, or that modules have none.
    adapted = PeftModel.from_pretrained(model, adapter).eval()
    found = {name: p for name, p in adapted.named_parameters() if ".lora_B." in name}
    empty = [name for name, p in found.items() if not p.abs().max() > 0]
    if not found or empty:
        sys.exit(f"modules without a trained adapter: {empty or 'all'}")
    json.dump([plain, scores(adapted, tokens)], sys.stdout)


main()
