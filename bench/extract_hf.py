#!/usr/bin/env python3
"""Write the Hugging Face folder of a GGUF file's model (f32 weights), for the PyTorch baseline.

  extract_hf.py MODEL.gguf FOLDER
"""

import sys
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM


def main() -> None:
    gguf, folder = Path(sys.argv[1]), Path(sys.argv[2])
    quantized = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    # transformers refuses to save a model that was loaded from GGUF, although its weights are plain floats.
    config = AutoConfig.for_model(**quantized.config.to_dict())
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(quantized.state_dict())
    partial = folder.with_name(folder.name + ".partial")
    model.save_pretrained(partial)
    partial.rename(folder)


if __name__ == "__main__":
    main()
