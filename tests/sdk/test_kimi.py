"""Kimi-K2.5 with its tower, as its released files describe it: images in conversations, framed by the chat template."""

import base64

import openai
import pytest
from tinker import types

import chat_model
import folders
import vision_model
from helpers import KEY, WAIT
from pictures import png
from server import TINY_MODELS

from trainyard.recipes.core import images  # isort: skip
from trainyard.recipes.core.chat import Chat  # isort: skip

MODEL = vision_model.KIMI
FOLDER = vision_model.write_kimi(folders.new() / MODEL)
MODELS = TINY_MODELS | {MODEL: FOLDER}
BEGIN, END, PAD, CONTENT = range(503, 507)

# 48 × 32 pixels: six positions.
FILE = png(3, 2)
QUESTION = [
    {
        "role": "user",
        "content": [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(FILE).decode()}"}},
            {"type": "text", "text": "What is it?"},
        ],
    }
]


@pytest.fixture(scope="module")
def oai(server):
    return openai.OpenAI(base_url=f"{server.url}/oai/api/v1", api_key=KEY, max_retries=0)


def test_the_template_frames_images_of_conversations(oai, service):
    """The reply is the sample behind the chunks that a client would write."""
    reply = oai.chat.completions.create(
        model=MODEL, messages=QUESTION, temperature=0, max_tokens=12, extra_body={"return_token_ids": True}
    )
    tokenizer = chat_model.tokenizer(FOLDER)

    def encoded(text):
        return types.EncodedTextChunk(tokens=tokenizer.encode(text, add_special_tokens=False))

    before = encoded("<|im_start|>user\n<|media_begin|>image<|media_content|>")
    behind = encoded("<|media_end|>\nWhat is it?<|im_end|>\n<|im_start|>assistant\n")
    assert (before.tokens[-1], behind.tokens[0], before.tokens[-7]) == (CONTENT, END, BEGIN)
    chunks = [before, types.ImageChunk(data=FILE, format="png", expected_tokens=6), behind]
    assert reply.usage.prompt_tokens == len(before.tokens) + 6 + len(behind.tokens)
    assert reply.prompt_token_ids == [*before.tokens, *[PAD] * 6, *behind.tokens]
    sampler = service.create_sampling_client(base_model=MODEL).result(WAIT)
    params = types.SamplingParams(max_tokens=12, temperature=0.0)
    sampled = sampler.sample(types.ModelInput(chunks=chunks), 1, params).result(WAIT).sequences[0]
    assert reply.choices[0].token_ids == sampled.tokens


def test_recipes_render_the_same_prompt(oai):
    chat = Chat(chat_model.tokenizer(FOLDER), lambda: images.Vision.load(str(FOLDER)))
    prompt = images.model_input(chat.prompt(QUESTION))
    reply = oai.chat.completions.create(
        model=MODEL, messages=QUESTION, max_tokens=1, extra_body={"return_token_ids": True}
    )
    found = [token for chunk in prompt.chunks for token in getattr(chunk, "tokens", [PAD] * chunk.length)]
    assert found == reply.prompt_token_ids


def test_the_placeholder_in_a_text_is_refused(oai):
    shifted = [{"role": "user", "content": [*QUESTION[0]["content"], {"type": "text", "text": "<|media_pad|>"}]}]
    with pytest.raises(openai.BadRequestError, match="2 places"):
        oai.chat.completions.create(model=MODEL, messages=shifted, max_tokens=1)
    with pytest.raises(openai.BadRequestError, match="video"):
        video = [
            {"role": "user", "content": [{"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA=="}}]}
        ]
        oai.chat.completions.create(model=MODEL, messages=video, max_tokens=1)
