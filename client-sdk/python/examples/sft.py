"""Supervised learning with the `trainyard` package: an adapter learns sequences by heart, is saved, and sampled.

`python client-sdk/python/examples/sft.py [MODEL]`, beside a server.
"""

import sys

import trainyard

STEPS = 10


def main() -> None:
    """Trains, saves and samples."""
    with trainyard.Client(tags=["example"]) as client:
        model = sys.argv[1] if len(sys.argv) > 1 else client.capabilities().supported_models[0].model_name
        run = client.create_run(model, lora=trainyard.LoraConfig(rank=16, seed=1))
        print(f"training {run.id} on {model}")
        counting = list(range(40, 72))
        data = [trainyard.Datum.next_token(counting), trainyard.Datum.next_token(list(range(40, 104, 2)))]
        adam = trainyard.AdamParams(learning_rate=5e-3)
        # All steps are submitted at once: the server executes them in this order.
        passes = []
        for _ in range(STEPS):
            passes.append(run.forward_backward(data))
            run.optim_step(adam)
        for step, future in enumerate(passes):
            print(f"step {step}: loss {future.result().loss:.3f}")
        print("saved", run.save_state("sft-example-python", overwrite=True).result())
        params = trainyard.SamplingParams(max_tokens=8, temperature=0.0)
        sample = run.sampler().sample(counting[:8], params).result()
        print(f"after {counting[:8]}: {sample.sequences[0].tokens}")


if __name__ == "__main__":
    main()
