"""Distillation without a server: several teachers, and a student that is its own teacher with a demonstration."""

import json
import types

import numpy as np
import pytest

import chat_model
import folders
import recipes  # noqa: F401 - makes the package importable

from trainyard.recipes import distill  # isort: skip
from trainyard.recipes.core import distances, spans  # isort: skip
from trainyard.recipes.core.chat import Chat  # isort: skip
from trainyard.recipes.core.config import ConfigError, load  # isort: skip


@pytest.fixture(scope="module")
def chat():
    folder = chat_model.write(folders.new() / "tiny-chat")
    return Chat(chat_model.tokenizer(folder))


def config(*flags):
    return load(distill.Config, ["--folder=f", "--data=d", *flags], {}, "x")


class Sampler:
    """Answers with its tokens; its candidates for a token are the token itself and the next number."""

    def __init__(self, *tokens):
        self.tokens, self.read = list(tokens), []

    def sample(self, prompt, count, params, topk_prompt_logprobs=0):
        tokens = prompt.to_ints()
        self.read.append(tokens)
        rows = [[(token, np.log(0.6)), (token + 1, np.log(0.2))] for token in tokens]
        sequence = types.SimpleNamespace(tokens=self.tokens, logprobs=[-1.0] * len(self.tokens))
        return Done(types.SimpleNamespace(sequences=[sequence] * count, topk_prompt_logprobs=rows if topk_prompt_logprobs else None))

    def compute_logprobs(self, prompt):
        self.read.append(prompt.to_ints())
        return Done([None, *(-float(self.tokens[0]) for _ in prompt.to_ints()[1:])])


class Done:
    def __init__(self, value):
        self.value = value

    def result(self):
        return self.value


def student(*tokens):
    """A run whose weights sample these tokens."""
    sampler = Sampler(*tokens)
    training = types.SimpleNamespace(save_weights_and_get_sampling_client=lambda: Done(sampler))
    return types.SimpleNamespace(training=training), sampler


MESSAGES = [{"role": "user", "content": "Two and two?"}, {"role": "assistant", "content": "Four."}]


@pytest.mark.parametrize("record", [{"messages": MESSAGES}, {"prompt": "Two and two?", "completion": "Four."}])
def test_the_teacher_reads_the_demonstration(chat, record):
    (prompt,) = distill.prompts([record], "data", chat, config("--mode=sdft", "--demonstration={answer}? {question}"))
    assert prompt.tokens == chat.prompt([{"role": "user", "content": "Two and two?"}])
    assert prompt.shown == chat.prompt([{"role": "user", "content": "Four.? Two and two?"}])
    (plain,) = distill.prompts([record], "data", chat, config("--teacher=t"))
    assert plain.shown == plain.tokens == prompt.tokens
    (usual,) = distill.prompts([record], "data", chat, config("--mode=sdft"))
    text = chat.decode(usual.shown)
    assert text.index("Two and two?") < text.index("Four.") < text.index("answer of your own")


def test_a_student_learns_what_it_would_say_with_the_demonstration():
    run, sampler = student(7, 9)
    method = distill.Demonstrated(run, lambda _: pytest.fail("there is no other teacher"), config("--mode=sdft", "--samples=1", "--top_k=2"))
    prompt = distill.Prompt([3, 4], [3, 5, 5, 5, 4])
    ((example,), count, entropy) = method.examples([prompt], 0)
    assert sampler.read == [[3, 4], [3, 5, 5, 5, 4, 7, 9]], "the answer follows what the teacher reads"
    assert example.model_input.to_ints() == [3, 4, 7] and count == 2
    assert example.loss_fn_inputs["target_tokens"].to_numpy().tolist() == [[0, 0], [7, 8], [9, 10]]
    np.testing.assert_allclose(example.loss_fn_inputs["weights"].to_numpy(), [[0, 0], [0.375, 0.125], [0.375, 0.125]], rtol=1e-6)
    assert entropy == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))


def test_both_divergences_are_learned_in_one_step():
    """The gradients of two losses on the same samples add up."""
    run, _ = student(7, 9)
    sent = []
    done = types.SimpleNamespace(metrics={"loss:sum": 0.5})
    run.training.forward_backward = lambda examples, loss: (sent.append((loss, examples)), Done(done))[1]
    run.optimize = lambda step: Done(types.SimpleNamespace(metrics=None))
    chosen = config("--mode=mixed", "--teacher=t", "--samples=1", "--top_k=2", "--kl=0.8", "--forward_kl=0.4")
    metrics = distill.Mixed(run, lambda _: Sampler(3), chosen).step([distill.Prompt([3, 4], [3, 4])], 0)
    (first, (policy,)), (second, (targets,)) = sent
    assert (first, second) == ("importance_sampling", "cross_entropy")
    # The log-probabilities are -1 under the student and -3 under the teacher.
    np.testing.assert_allclose(policy.loss_fn_inputs["advantages"].to_numpy(), [0.0, -0.8, -0.8], rtol=1e-6)
    np.testing.assert_allclose(targets.loss_fn_inputs["weights"].to_numpy(), 0.4 * np.array([[0, 0], [0.375, 0.125], [0.375, 0.125]]), rtol=1e-6)
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert metrics["reverse_kl"] == 2.0 and metrics["forward_kl"] == pytest.approx(0.5 / 0.4 - entropy)
    assert config("--mode=mixed", "--teacher=t", "--kl=0.8").forward_weight == 0.8


def test_each_record_has_the_teacher_that_it_names(chat):
    records = [{"prompt": "a", "teacher": "maths"}, {"prompt": "b", "teacher": "code"}, {"prompt": "c"}]
    flags = ["--teachers.maths=m", "--teachers.code=c", "--teacher=t", "--samples=1"]
    wanted = distill.prompts(records, "data", chat, config(*flags))
    assert [one.teacher for one in wanted] == ["maths", "code", ""]
    opened = {name: Sampler(number) for number, name in enumerate(["t", "m", "c"], 1)}
    service = types.SimpleNamespace(create_sampling_client=lambda base_model: Done(opened[base_model]))
    teachers = distill.teachers_of(types.SimpleNamespace(service=service), config(*flags))
    run, _ = student(7, 9)
    _, apart = distill.OnPolicy(run, teachers, config(*flags)).student(wanted, 0)
    assert apart == [[(1.0, 1)] * 2, [(2.0, 1)] * 2, [(0.0, 1)] * 2], "minus one, less the number of the teacher"
    assert [len(one.read) for one in opened.values()] == [1, 1, 1]
    samples = distill.sampled(teachers, wanted, config(*flags), 0)
    assert [one.answer for one in samples] == [[2], [3], [1]]


@pytest.mark.parametrize(
    ("record", "flags", "named"),
    [
        ({"prompt": "a"}, ["--mode=sdft"], ["data", "sdft", "completion", "prompt"]),
        ({"messages": MESSAGES[:1]}, ["--mode=sdft"], ["data", "a last message of the assistant"]),
        ({"prompt": "a", "teacher": "art"}, ["--teachers.maths=m"], ["data", "'art'", "maths"]),
        ({"prompt": "a"}, ["--teachers.maths=m"], ["names no teacher", "maths"]),
    ],
)
def test_records_that_lack_something_are_named(chat, record, flags, named):
    with pytest.raises(ConfigError) as refused:
        distill.prompts([record], "data", chat, config(*flags))
    assert all(text in str(refused.value) for text in named), refused.value


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ([], ["teacher", "required"]),
        (["--teachers.maths=1"], ["teachers.maths", "not 1"]),
        (["--teacher=t", "--demonstration={question}{answer}"], ["demonstration", "sdft", "on_policy"]),
        (["--mode=sdft", "--demonstration={question}"], ["demonstration", "{answer}"]),
        (["--teacher=t", "--forward_kl=0.5"], ["forward_kl", "on_policy", "only by mixed"]),
        (["--mode=mixed", "--teacher=t", "--forward_kl=-1"], ["forward_kl", "at least 0"]),
    ],
)
def test_settings_that_exclude_each_other_are_named(flags, named):
    with pytest.raises(ConfigError) as refused:
        config(*flags)
    assert all(text in str(refused.value) for text in named), json.dumps(str(refused.value))


@pytest.fixture(scope="module")
def reader(chat):
    folder = chat_model.write_bytes(folders.new() / "tiny-bytes")
    return spans.Reader(chat, Chat(chat_model.tokenizer(folder)))


TEXTS = ["abba", "a", " ab  cd", "d\N{LATIN SMALL LETTER E WITH ACUTE}j\N{LATIN SMALL LETTER A WITH GRAVE} vu", "\N{GRINNING FACE}ab\N{GRINNING FACE}"]


@pytest.mark.parametrize("text", TEXTS)
def test_spans_say_the_same_in_both_tokenizers(chat, reader, text):
    answer = chat.encode(text) + [chat_model.EOS]
    read, found = reader.read(answer)
    assert reader.teacher.decode(read) == text and read[-1] == chat_model.EOS
    assert [at for span in found for at in span.own] == list(range(len(answer)))
    assert [at for span in found for at in span.other] == list(range(len(read)))
    for span in found:
        own, other = ([tokens[at] for at in places] for tokens, places in ((answer, span.own), (read, span.other)))
        assert chat.decode(own) == reader.teacher.decode(other)
    assert len(found) == len({chat.decode(answer[:at]) for at in range(1, len(answer) + 1)} & {text[:at] for at in range(1, len(text) + 1)}) + 1
    assert reader.read(answer[:-1])[1] == found[:-1], "without an end"


def test_pairs_of_letters_are_one_span(chat, reader):
    answer = chat.encode("abx")
    assert chat.tokenizer.convert_ids_to_tokens(answer) == ["ab", "x"]
    read, found = reader.read(answer)
    assert [(list(span.own), list(span.other)) for span in found] == [([0], [0, 1]), ([1], [2])]
    back, found = spans.Reader(reader.teacher, chat).read(read)
    assert back == answer and [(list(span.own), list(span.other)) for span in found] == [([0, 1], [0]), ([2], [1])]


def test_an_answer_without_text_has_an_end_alone(chat, reader):
    assert reader.read([chat_model.EOS]) == ([chat_model.EOS], [spans.Span(range(1), range(1))])
    assert reader.read([]) == ([], [])


class Changing:
    """A tokenizer that changes what it encodes."""

    eos_token = None

    def encode(self, text, add_special_tokens=False):
        return [ord(letter) for letter in text.upper()]

    def decode(self, tokens, skip_special_tokens=True):
        return "".join(map(chr, tokens))


def test_where_texts_differ_there_is_one_span(chat):
    read, found = spans.Reader(chat, Chat(Changing())).read(chat.encode("abx"))
    assert len(read) == 3 and found == [spans.Span(range(2), range(3))]


@pytest.mark.parametrize("center", [False, True])
def test_a_span_is_judged_as_a_whole(chat, reader, center):
    """The student has bytes here, and the teacher pairs of letters."""
    back = spans.Reader(reader.teacher, chat)
    answer = reader.teacher.encode("abx")
    prompt = distances.Prompt([3, 4], [5, 6, 7], reader=back)
    one = distances.Sample(prompt, answer, [-1.0, -2.0, -0.5])
    assert one.scored == [5, 6, 7, *chat.encode("abx")]
    apart = distances.apart_of(one, [None, -9.0, -9.0, -4.0, -0.25])
    assert apart == [(1.0, 2), (1.0, 2), (-0.25, 1)]
    assert distances.reverse_kl([apart]) == pytest.approx(0.25), "0.75 of three tokens"
    (example,) = distill.nearer([one], [apart], config("--teacher=t", "--kl=0.6", f"--center={str(center).lower()}"))
    base = 0.25 if center else 0.0
    expected = [0.0, 0.2 * (2 * base - 1), 0.2 * (2 * base - 1), 0.2 * (base + 0.25)]
    np.testing.assert_allclose(example.loss_fn_inputs["advantages"].to_numpy(), expected, rtol=1e-6)
    if center:
        assert sum(token.share - base for token in apart) == pytest.approx(0)


def test_the_teacher_reads_the_conversation_in_its_own_template(chat, reader):
    flags = ["--teacher=t", "--teacher_tokenizer=x", "--teachers.code=c"]
    records = [{"prompt": "Hi"}, {"prompt": "Hi", "teacher": "code"}]
    first, second = distill.prompts(records, "data", chat, config(*flags), {"": reader})
    assert chat.tokenizer.decode(first.tokens) == "<|user|>Hi<|end|><|assistant|>"
    assert reader.teacher.tokenizer.decode(first.shown) == "[user]Hi<|end|><|assistant|>"
    assert second.shown == second.tokens and second.reader is None, "that teacher has the student's tokenizer"


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--teacher=t", "--teacher_tokenizer=x", "--mode=mixed"], ["teacher_tokenizer", "mixed", "use on_policy"]),
        (["--mode=sdft", "--teacher=t", "--teacher_tokenizer=x"], ["teacher_tokenizer", "use on_policy"]),
        (["--teachers.a=t", "--teacher_tokenizer=x"], ["teacher_tokenizer", "teacher is not set"]),
        (["--teachers.a=t", "--teacher_tokenizers.b=x"], ["teacher_tokenizers.b", "no such name"]),
    ],
)
def test_tokenizers_belong_to_teachers(flags, named):
    with pytest.raises(ConfigError) as refusal:
        config(*flags)
    assert all(word in str(refusal.value) for word in named), refusal.value
