#!/usr/bin/env python3
"""Runs the workloads of `trainyard-bench` with transformers and PEFT, as the baseline.

One workload per process, so that peak memory is the workload's own. Prints one JSON object.

  peft_baseline.py --model FOLDER --workload w1 --dtype bf16 [--device cuda] [--compile]
"""

import argparse
import json
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from peft import LoraConfig, get_peft_model
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM

LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
DELTA_NET_LINEARS = ["in_proj_qkv", "in_proj_z", "out_proj"]
TENANTS = 8
PROMPT = 64


class Bench:
    """A model, its adapters and the random token ids of one workload."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        bf16 = options.dtype == "bf16"
        self.bf16 = bf16
        self.model = AutoModelForCausalLM.from_pretrained(
            options.model, dtype=torch.bfloat16 if bf16 else torch.float32, attn_implementation="sdpa"
        ).to(options.device)
        self.vocab = self.model.config.vocab_size
        self.generator = torch.Generator().manual_seed(0)

    def tokens(self, sequences: int, length: int) -> torch.Tensor:
        return torch.randint(0, self.vocab, (sequences, length), generator=self.generator).to(self.options.device)

    def lora(self) -> LoraConfig:
        rank = self.options.rank
        targets = [*LINEARS, "lm_head"] if self.options.train_unembed else LINEARS
        if "linear_attention" in (getattr(self.model.config, "layer_types", None) or []):
            targets = targets + DELTA_NET_LINEARS
        return LoraConfig(r=rank, lora_alpha=32, lora_dropout=0.0, target_modules=targets, task_type="CAUSAL_LM")

    def adapt(self) -> None:
        """Adds adapters, eight for w2, as if they had been trained: B is not zero."""
        self.model = get_peft_model(self.model, self.lora())
        if self.options.workload == "w2":
            for tenant in range(1, TENANTS):
                self.model.add_adapter(f"tenant{tenant}", self.lora())
        for name, parameter in self.model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(parameter, std=0.01)

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.options.device, dtype=torch.bfloat16, enabled=self.bf16)

    def loss(self, batch: torch.Tensor) -> torch.Tensor:
        with self.autocast():
            logits = self.model(input_ids=batch[:, :-1], use_cache=False).logits
            return cross_entropy(logits.float().flatten(0, 1), batch[:, 1:].flatten())

    def step(self, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> None:
        self.loss(batch).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def train(self) -> tuple[Callable[[], None], int]:
        options = self.options
        self.model.train()
        if options.compile:
            # The extents never change. The first steps, which compile, are not counted.
            self.model = torch.compile(self.model, dynamic=False)
        optimizer = adamw(p for p in self.model.parameters() if p.requires_grad)
        batch = self.tokens(options.batch, options.seq + 1)
        return lambda: self.step(optimizer, batch), options.batch * options.seq

    def many_runs(self) -> tuple[Callable[[], None], int]:
        self.model.train()
        runs = []
        for adapter in self.model.peft_config:
            parameters = [p for n, p in self.model.named_parameters() if "lora_" in n and f".{adapter}." in n]
            runs.append((adapter, adamw(parameters), self.tokens(1, self.options.seq + 1)))

        def round_of_steps() -> None:
            for adapter, optimizer, batch in runs:
                self.model.set_adapter(adapter)
                self.step(optimizer, batch)

        return round_of_steps, TENANTS * self.options.seq

    def generate(self, sequences: int, new: int) -> tuple[Callable[[], None], int]:
        self.model.eval()
        prompts = self.tokens(sequences, PROMPT)
        self.model.generation_config.eos_token_id = None
        self.model.generation_config.pad_token_id = 0

        def sample() -> None:
            with torch.inference_mode(), self.autocast():
                output = self.model.generate(
                    input_ids=prompts,
                    attention_mask=torch.ones_like(prompts),
                    do_sample=True,
                    temperature=1.0,
                    top_k=0,
                    top_p=1.0,
                    max_new_tokens=new,
                    return_dict_in_generate=True,
                    output_logits=True,
                )
                logits = torch.stack(output.logits, 1).float()
                logprobs = token_logprobs(logits, output.sequences[:, PROMPT:])
            assert logprobs.shape == (sequences, new), logprobs.shape

        return sample, sequences * new

    def score(self) -> tuple[Callable[[], None], int]:
        self.model.eval()
        prompts = self.tokens(self.options.batch, self.options.seq)

        def logprobs() -> None:
            with torch.inference_mode(), self.autocast():
                logits = self.model(input_ids=prompts, use_cache=False).logits[:, :-1]
                # One sequence at a time: its f32 logits are 50 MB.
                for row, targets in zip(logits, prompts[:, 1:]):
                    token_logprobs(row.float(), targets)

        return logprobs, prompts.numel()


def adamw(parameters: Iterator[torch.nn.Parameter] | list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-4)


def token_logprobs(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return logits.gather(-1, tokens[..., None]).squeeze(-1) - logits.logsumexp(-1)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="Hugging Face folder")
    parser.add_argument("--workload", required=True, choices=["w1", "w1f", "w2", "w3", "w3b1", "w3b128", "w4"])
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "f32"])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--base", action="store_true", help="no adapter")
    parser.add_argument("--train-unembed", action="store_true", help="also adapt the unembedding")
    parser.add_argument("--compile", action="store_true", help="w1 and w1f with torch.compile, which needs a C++ compiler")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--new-tokens", type=int, help="instead of 64, of w3b1 128")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if options.compile and options.workload not in ("w1", "w1f"):
        parser.error("--compile is for w1 and w1f")
    return options


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    bench = Bench(options)
    if options.workload != "w1f" and not options.base:
        bench.adapt()
    prepare = {
        "w1": bench.train,
        "w1f": bench.train,
        "w2": bench.many_runs,
        "w3": lambda: bench.generate(16, options.new_tokens or 64),
        "w3b1": lambda: bench.generate(1, options.new_tokens or 128),
        "w3b128": lambda: bench.generate(128, options.new_tokens or 64),
        "w4": bench.score,
    }
    work, tokens = prepare[options.workload]()
    on_gpu = options.device == "cuda"
    seconds = []
    for _ in range(1 + options.reps):
        start = time.perf_counter()
        work()
        if on_gpu:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    first, *steady = seconds
    rates = [tokens / s for s in steady]
    report = {
        "name": options.workload,
        "dtype": options.dtype,
        "compiled": options.compile,
        "tokens": tokens,
        "tokens_per_second": {"median": statistics.median(rates), "min": min(rates), "max": max(rates)},
        "first_seconds": first,
        "seconds": steady,
        # Peak memory of the GPU, or of the process.
        "peak_memory_mib": torch.cuda.max_memory_allocated() / (1 << 20)
        if on_gpu
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "load_average": os.getloadavg()[0],
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
