"""Work of a LoRA step and of decoding with Qwen3-8B's shape, kernel by kernel."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_kernels import GEMM, MEMORY, Work, ceil

# Extents of Qwen3-8B.
BLOCKS, HIDDEN, HEADS, KV_HEADS, DIM, INNER, VOCAB = 36, 4096, 32, 8, 128, 12288, 151936
Q, KV = HEADS * DIM, KV_HEADS * DIM
QKV = Q + 2 * KV
RANK, SEQUENCES, LENGTH, CONTEXT = 32, 8, 2048, 2048
# Most rows of a pass, and the number from which more bring little; memory for runs first: as the runtime divides it.
PASS_ROWS, ENOUGH_ROWS, RUNS, GIB = 8192, 4096, 4 << 30, 1 << 30
# Most outputs that a GEMM computes.
CHUNK = 8192
LINEAR = {"q": (HIDDEN, Q), "k": (HIDDEN, KV), "v": (HIDDEN, KV), "o": (Q, HIDDEN)}
LINEAR |= {"gate": (HIDDEN, INNER), "up": (HIDDEN, INNER), "down": (INNER, HIDDEN)}
ADAPTER = sum(RANK * (i + o) for i, o in LINEAR.values())
WEIGHTS = BLOCKS * (HIDDEN * QKV + Q * HIDDEN + 3 * HIDDEN * INNER) + VOCAB * HIDDEN

# Layers that share an input, and therefore a launch of each kernel of adapters.
CALLS = (("q", "k", "v"), ("o",), ("gate", "up"), ("down",))

DECODED = "1 row of 4+1 heads of 128, 256 keys"
PREFILLED = "1024 rows of 4+1 heads of 128"
LORA_MANY = "576 rows of 1024 inputs, 1024 outputs, rank 32"
LORA_ONE = "1 row of 4096 inputs, 1024 outputs, rank 32"
# Layers whose outputs are added to the residual stream, which their launch of `tensor_lora_expand` reads.
ONTO, RESIDUAL = ", onto rows", ("o", "down")
LORA_GRADIENT = {"A": "of A, 1024 rows: 32x256", "B": "of B, 1024 rows: 256x32"}


def gemm(rows: int, k: int, n: int, label: str, *, accumulate: bool = False, chunked: bool = False, times: float = 1) -> Work:
    """Returns a GEMM of bf16 to f32; `chunked` along the outputs, as in the forward pass."""
    least = 2 * rows * k + 2 * k * n + 4 * rows * n * (2 if accumulate else 1)
    launches = -(-n // CHUNK) if chunked else 1
    return Work(f"GEMM {label}", least * times, 2 * rows * k * n * times, launches * times, gemm=True)


def copy(bytes_: float, label: str, times: float = 1) -> Work:
    return Work(label, bytes_ * times, launches=times)


def each(name: str, rows: int, width: int, bytes_: float, times: float = 1, flop: float = 0, launches: float = 0) -> Work:
    """Returns a kernel whose units are elements."""
    elements = rows * width
    of_thread = 4 if name.startswith(("round", "activate")) else 1
    if name.startswith("kv_write"):
        of_thread = 2
    spread = name.startswith(("activate", "round", "gather", "scatter", "kv_write"))
    warps = elements / 32 / of_thread if spread else rows * 8
    return Work(name, elements * bytes_ * times, elements * flop * times, launches or times, elements * times, warps)


def lora(rows: int, kind: str, times: float = 1) -> list[Work]:
    """Returns a kernel on adapters of all layers: shrink, expand, or either of the backward pass."""
    side = 0 if kind in ("shrink", "expand_backward") else 1
    few = rows <= 512
    name = "tensor_lora_" + kind + ("_few" if kind == "shrink" and few else "")
    shape = LORA_ONE if kind == "shrink" and few or kind == "expand" and rows <= 64 else LORA_MANY
    # The line of one row equals that of a whole tile of rows.
    counted_rows = rows if shape == LORA_MANY else ceil(rows, 8 if kind == "shrink" else 64)
    found = []
    for call in CALLS:
        widths = [LINEAR[module][side] for module in call]
        narrow = 2 * rows * RANK * len(call) + 2 * RANK * sum(widths)
        # The shrinks read bf16; the others write f32, to which the GEMM adds.
        onto = kind == "expand" and call[0] in RESIDUAL
        bytes_ = 2 if kind.startswith("shrink") else 8 if onto else 4
        # Inputs are read once for all layers of a call, and their gradient is written once.
        wide = rows * (max(widths) if side == 0 else sum(widths)) * bytes_
        if kind == "shrink":
            warps = ceil(rows, 8) * RANK / 8 * 16 * len(call) if few else ceil(rows, 64) * 4 * len(call)
        elif kind == "shrink_backward":
            warps = ceil(rows, 64) * 4 * len(call)
        elif kind == "expand":
            warps = ceil(rows, 64) * 4 * sum(ceil(width, 128) for width in widths)
        else:
            warps = ceil(rows, 64) * 4 * ceil(max(widths), 64)
        products = RANK * sum(widths) * times
        uploads = times if kind.startswith("shrink") else 0
        of = shape + (ONTO if onto else "")
        work = Work(name, (narrow + wide) * times, 2 * rows * products, times, counted_rows * products, warps, of, uploads=uploads)
        work.per_block = 16 if name.endswith("_few") else 4
        found.append(work)
    return found


def gradients(rows: int, times: float) -> list[Work]:
    """Returns the gradients of A and B: a launch for each call computes both."""
    found = []
    for call in CALLS:
        blocks = sum(ceil(width, 64) for module in call for width in LINEAR[module])
        for side, part in enumerate("AB"):
            widths = [LINEAR[module][side] for module in call]
            products = rows * RANK * sum(widths) * times
            # Both sides are bf16. Inputs are read by each layer of the call.
            least = (2 * rows * (sum(widths) + len(widths) * RANK) + 8 * RANK * sum(widths)) * times
            name, shape = "tensor_outer_products", LORA_GRADIENT[part]
            found.append(Work(name, least, 2 * products, times / 2, products, 8 * blocks, shape, uploads=times))
    return found


@dataclass
class Design:
    """Possible changes: activations saved in bf16, attention at the rates of published kernels."""

    narrow: bool = False
    attention: bool = False


def adapters_of(rows: int, kinds: tuple[str, ...], times: float) -> list[Work]:
    return [work for kind in kinds for work in lora(rows, kind, times)]


def attention(design: Design, sequences: int, blocks: float) -> list[Work]:
    pairs = sequences * HEADS * LENGTH * (LENGTH + 1) / 2
    rows = sequences * LENGTH
    # One tile of queries contains 16 rows of the four heads of a key head.
    tiles = sequences * KV_HEADS * sum((16 * i + 15) // 32 + 1 for i in range(LENGTH // 16))
    least, flop = rows * (Q * 8 + 2 * KV * 2) * blocks, 4 * DIM * pairs * blocks
    if design.attention:
        return [Work("GEMM attention", least, flop * GEMM / 250e12, blocks, gemm=True)]
    # The counted line has 17 tiles for each block of threads; here the average is 33.
    return [Work("tensor_attention_128", least, flop, blocks, tiles * blocks, shape=PREFILLED, per_block=4)]


def attention_backward(design: Design, sequences: int, blocks: float) -> list[Work]:
    pairs = sequences * HEADS * LENGTH * (LENGTH + 1) / 2
    rows = sequences * LENGTH
    flop, least = 10 * DIM * pairs * blocks, rows * (3 * Q * 4 + 2 * KV * 4) * blocks
    tiles = sequences * KV_HEADS * sum((16 * i + 15) // 32 + 1 for i in range(LENGTH // 16))
    steps = sequences * HEADS * sum((LENGTH - 64 * i) // 16 for i in range(LENGTH // 64))
    if design.attention:
        return [Work("GEMM attention", least, flop * GEMM / 180e12, blocks, gemm=True)]
    q, kv = "tensor_attention_backward_q_128", "tensor_attention_backward_kv_128"
    return [
        Work("tensor_attention_prepare", rows * Q * 16 * blocks, 0, blocks, rows * HEADS * blocks),
        # Of five products for each pair, both kernels compute the gradients of scores and probabilities.
        Work(q, least, flop * 2 / 5, blocks, tiles * blocks, shape=PREFILLED, per_block=4),
        Work(kv, least, flop * 3 / 5, blocks, steps * blocks, shape=PREFILLED, per_block=4),
    ]


def block_forward(design: Design, sequences: int) -> list[Work]:
    rows, blocks = sequences * LENGTH, BLOCKS
    return [
        each("norm_bf16", rows, HIDDEN, 6, 2 * blocks),
        gemm(rows, HIDDEN, QKV, "forward", accumulate=True, chunked=True, times=blocks),
        # To other memory, because v is copied.
        Work("rotate", rows * QKV * 8 * blocks, 0, blocks, rows * blocks, rows * 48, uploads=blocks),
        each("kv_write_bf16", rows, 2 * KV, 6, blocks),
        *attention(design, sequences, blocks),
        each("round_to_bf16", rows, HIDDEN, 6, blocks),
        gemm(rows, Q, HIDDEN, "forward", accumulate=True, chunked=True, times=blocks),
        gemm(rows, HIDDEN, 2 * INNER, "forward", accumulate=True, chunked=True, times=blocks),
        each("activate_bf16", rows, INNER, 10, blocks),
        gemm(rows, INNER, HIDDEN, "forward", accumulate=True, chunked=True, times=blocks),
        *adapters_of(rows, ("shrink", "expand"), blocks),
    ]


def block_backward(design: Design, sequences: int) -> list[Work]:
    rows, blocks = sequences * LENGTH, BLOCKS
    return [
        # The gradient of the residual stream for down and for o, and attention's output for the gradient of A.
        each("round_to_bf16", rows, 2 * HIDDEN + Q, 6, blocks, launches=3 * blocks),
        gemm(rows, HIDDEN, INNER, "input gradients", accumulate=True, times=blocks),
        each("activate_backward_bf16", rows, INNER, 18, blocks),
        gemm(rows, 2 * INNER, HIDDEN, "input gradients", accumulate=True, times=blocks),
        each("norm_bf16", rows, HIDDEN, 6, 2 * blocks),
        each("norm_backward", rows, HIDDEN, 16, 2 * blocks),
        gemm(rows, HIDDEN, Q, "input gradients", accumulate=True, times=blocks),
        *attention_backward(design, sequences, blocks),
        Work("rotate_back_rounded", rows * (6 * QKV + 4 * (Q + KV)) * blocks, 0, blocks, rows * blocks, rows * 48, uploads=blocks),
        gemm(rows, QKV, HIDDEN, "input gradients", accumulate=True, times=blocks),
        *adapters_of(rows, ("shrink_backward", "expand_backward"), blocks),
        *gradients(rows, blocks),
    ]


def ends(sequences: int) -> list[Work]:
    """Returns the embedding, and the loss head forward and backward, whose logits are computed again."""
    rows = sequences * LENGTH
    chunks = -(-VOCAB // CHUNK)
    head = [gemm(rows, HIDDEN, VOCAB, "loss head", chunked=True) for _ in range(2)]
    # Every chunk reads and writes the gradient of hidden states.
    back = 2 * rows * VOCAB + 2 * VOCAB * HIDDEN + 8 * rows * HIDDEN * chunks
    return [
        each("embed_bf16", rows, HIDDEN, 6),
        each("norm_f32", rows, HIDDEN, 8),
        each("gather_rows", rows, HIDDEN, 8, 2),
        each("scatter_rows", rows, HIDDEN, 8),
        copy(rows * HIDDEN * 4, "memset", 3),
        each("round_to_bf16", rows, 2 * HIDDEN, 6, launches=2),
        *head,
        each("head_chunk", rows, VOCAB, 4, launches=chunks),
        each("head_gradient_bf16", rows, VOCAB, 6, launches=chunks),
        Work("GEMM loss head", back, 2 * rows * VOCAB * HIDDEN, chunks, gemm=True),
        each("norm_backward", rows, HIDDEN, 16),
    ]


def update() -> list[Work]:
    """Returns AdamW and the rounding of adapters."""
    params = BLOCKS * ADAPTER
    return [
        Work("squares", 4 * params, 0, 1, params),
        Work("adamw", 28 * params, 0, 1, params),
        Work("round_to_bf16", 6 * params, 0, 2 * len(LINEAR) * BLOCKS, params / 4),
    ]


# Bytes per row that a block saves, and of other live data.
SAVED, WORKING = 4 * (2 * HIDDEN + 2 * QKV + Q + HEADS + 2 * INNER), 4 * (5 * INNER + 2 * QKV)


def sequences_of_pass(device: str, design: Design) -> int:
    """Plans a pass as the trainer does by default: as many rows as let every block save its activations."""
    weights = 2 * (WEIGHTS + VOCAB * HIDDEN)
    # A checkpoint of all weights must fit beside them.
    left = 0.8 * MEMORY[device] - 2 * weights
    row = BLOCKS * (SAVED + 4 * KV) + WORKING
    budget = min(min(GIB, left / 8) + 0.6 * (left - RUNS), ENOUGH_ROWS * row * 9 / 8)
    fits = int(min(budget / (BLOCKS * (SAVED / (1 + design.narrow) + 4 * KV) + WORKING), PASS_ROWS)) // LENGTH
    # An even part of the request; a single sequence that does not fit would compute blocks again.
    return max(number for number in (1, 2, 4) if number <= max(fits, 1))


def pass_of(design: Design, sequences: int) -> list[Work]:
    return block_forward(design, sequences) + block_backward(design, sequences) + ends(sequences)


def lora_step(device: str, design: Design) -> list[Work]:
    sequences = sequences_of_pass(device, design)
    return pass_of(design, sequences) * (SEQUENCES // sequences) + update()


def decode(batch: int, adapters: bool) -> list[Work]:
    """Returns the work of one token for each of `batch` sequences; with one adapter for all, or none."""
    b = BLOCKS
    keys, splits = batch * CONTEXT * 2 * KV * 2 * b, CONTEXT // 128
    apart = batch * KV_HEADS < 264
    # Counted as if one block of threads handled all splits of keys where they are not separate.
    warps = batch * KV_HEADS * 4 * (splits if apart else 1)
    tiles = batch * KV_HEADS * CONTEXT / 32 * b
    attend = [Work("tensor_attention_split_128", keys, 0, b, tiles, warps, DECODED, per_block=4)]
    if apart:
        parts = batch * HEADS * splits
        attend.append(Work("tensor_attention_join", parts * DIM * 4 * b, 0, b, parts * b, batch * HEADS * 4, DECODED, per_block=4))
    on_adapters = adapters_of(batch, ("shrink", "expand"), b) if adapters else []
    wide = f"weights, {batch} rows"
    return [
        each("embed_bf16", batch, HIDDEN, 6),
        each("norm_bf16", batch, HIDDEN, 6, 2 * b + 1),
        gemm(batch, HIDDEN, QKV, wide, accumulate=adapters, chunked=True, times=b),
        Work("rotate", batch * (Q + KV) * 8 * b, 0, b, batch * b, batch * 40, uploads=b, per_block=4),
        each("kv_write_bf16", batch, 2 * KV, 6, b),
        *attend,
        each("round_to_bf16", batch, HIDDEN, 6, b),
        gemm(batch, Q, HIDDEN, wide, accumulate=True, chunked=True, times=b),
        gemm(batch, HIDDEN, 2 * INNER, wide, accumulate=adapters, chunked=True, times=b),
        each("activate_bf16", batch, INNER, 10, b),
        gemm(batch, INNER, HIDDEN, wide, accumulate=True, chunked=True, times=b),
        *on_adapters,
        gemm(batch, HIDDEN, VOCAB, wide, chunked=True),
        Work("row_log_sums", batch * VOCAB * 4, 0, 1, batch * VOCAB, batch * 8, uploads=2),
        Work("sample", batch * VOCAB * 4, 0, 1, batch * VOCAB, batch * 16, uploads=4, per_block=16),
    ]


def model_flop() -> float:
    """Returns the operations of a LoRA step: GEMMs of blocks and loss head, attention and adapters; nothing twice."""
    rows = SEQUENCES * LENGTH
    pairs = SEQUENCES * HEADS * LENGTH * (LENGTH + 1) / 2
    return rows * (4 * WEIGHTS + 6 * BLOCKS * ADAPTER) + BLOCKS * pairs * DIM * 14
