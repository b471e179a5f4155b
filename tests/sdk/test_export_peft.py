"""Adapters that `trainyard export --peft` writes, loaded by the real `peft` into the real models.

PyTorch is large: it is in an environment of its own, whose interpreter is `TRAINYARD_TEST_PEFT`.
"""

import json
import os
import subprocess

import pytest

from helpers import WAIT, client, datum, lora, prompt, train
from process import PATIENCE
from server import BINARY, GOLDEN, KEY

PYTHON = os.environ.get("TRAINYARD_TEST_PEFT")
SCORES = GOLDEN.parent / "sdk" / "peft_scores.py"
# Plain modules; fused ones, of which adapters are on parts; a recurrence; latent attention.
FAMILIES = ["qwen2", "phi3", "qwen3_5", "deepseek_v3"]
TOKENS = [(7 * i * i + 3 * i + 5) % 500 for i in range(40)]

pytestmark = [
    pytest.mark.deployments("sqlite"),
    pytest.mark.skipif(not PYTHON, reason="TRAINYARD_TEST_PEFT, an interpreter with the packages of peft.txt, is not set"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory, deploy):
    models = {family: GOLDEN / family for family in FAMILIES}
    with deploy(tmp_path_factory.mktemp("peft"), models=models, dtype="f32") as deployed:
        yield deployed


@pytest.mark.parametrize("family", FAMILIES)
def test_peft_computes_what_the_server_does(server, family, tmp_path):
    with client(server) as service:
        # `peft` has no form for adapters on experts, which `train_mlp` of this family would be on too.
        training = lora(service, family, train_mlp=family != "deepseek_v3", train_unembed=False)
        for _ in range(3):
            train(training, [datum(TOKENS)])
        path = training.save_weights_for_sampler("v1").result(WAIT).path
        scores = lambda sampler: sampler.compute_logprobs(prompt(TOKENS)).result(WAIT)[1:]  # noqa: E731
        adapted = scores(service.create_sampling_client(model_path=path).result(WAIT))
        plain = scores(service.create_sampling_client(base_model=family).result(WAIT))
    exported = tmp_path / "adapter"
    words = ["export", path, "--output", exported, "--peft", GOLDEN / family, "--url", server.url]
    done = subprocess.run(
        [str(word) for word in (BINARY, *words)], capture_output=True, text=True, timeout=60 * PATIENCE,
        env=os.environ | {"TINKER_API_KEY": KEY},
    )
    assert done.returncode == 0, done.stderr
    loaded = subprocess.run(
        [PYTHON, SCORES, GOLDEN / family, exported], input=json.dumps(TOKENS), capture_output=True, text=True,
        timeout=300 * PATIENCE,
    )
    assert loaded.returncode == 0, loaded.stderr
    found_plain, found = json.loads(loaded.stdout)
    assert found_plain == pytest.approx(plain, abs=1e-4)
    assert max(abs(a - b) for a, b in zip(adapted, plain, strict=True)) > 0.01
    assert found == pytest.approx(adapted, abs=1e-4)
