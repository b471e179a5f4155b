"""Sampling with the `trainyard` package: tokens with their log-probabilities, and a conversation as it is written.

`python client-sdk/python/examples/sample.py [MODEL]`, beside a server.
"""

import sys

import trainyard
from trainyard.models import ChatMessage, ChatRequest


def main() -> None:
    """Samples tokens, then a conversation."""
    with trainyard.Client(tags=["example"]) as client:
        model = sys.argv[1] if len(sys.argv) > 1 else client.capabilities().supported_models[0].model_name
        params = trainyard.SamplingParams(max_tokens=8, seed=1)
        sampler = client.sampler(model)
        for sequence in sampler.sample([40, 41, 42], params, num_samples=2).result().sequences:
            print(sequence.stop_reason, sequence.tokens, sequence.logprobs)
        message = ChatMessage(role="user", content="What is the capital of France?")
        try:
            for chunk in client.stream_chat(ChatRequest(model=model, messages=[message], max_tokens=32)):
                print(chunk["choices"][0]["delta"].get("content") or "", end="", flush=True)
            print()
        except trainyard.InvalidRequestError as error:
            # Not every model has a chat template.
            print("no conversation:", error.detail)


if __name__ == "__main__":
    main()
