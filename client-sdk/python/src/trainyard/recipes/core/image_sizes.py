"""How many positions an image of some size takes, by the preprocessors of model families."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from .config import ConfigError

ASPECT_RATIO = 200
"""Largest aspect ratio that Qwen's processor accepts."""


class Sizes(Protocol):
    """The rule of a preprocessor."""

    def count(self, width: int, height: int) -> int:
        """Returns the number of positions of an image."""
        ...


@dataclass(frozen=True)
class Qwen:
    """The rule of Qwen's models: both sides are rounded to whole positions, then scaled into a range of pixels."""

    unit: int
    """Side of the square of pixels that one position covers."""
    fewest: int
    most: int
    """Bounds on the number of pixels of a resized image."""

    @classmethod
    def of(cls, settings: dict[str, Any]) -> Qwen:
        """Returns the rule of a `preprocessor_config.json`."""
        size = settings.get("size") or {}
        return cls(
            int(settings.get("patch_size", 14)) * int(settings.get("merge_size", 2)),
            int(settings.get("min_pixels") or size.get("shortest_edge") or 56 * 56),
            int(settings.get("max_pixels") or size.get("longest_edge") or 28 * 28 * 1280),
        )

    def count(self, width: int, height: int) -> int:
        if max(width, height) > ASPECT_RATIO * min(width, height):
            raise ConfigError(f"data: an image of {width}x{height} pixels exceeds the aspect ratio 1:{ASPECT_RATIO}")
        columns, rows = round(width / self.unit), round(height / self.unit)
        pixels = columns * rows * self.unit**2
        if pixels > self.most:
            scale = math.sqrt(width * height / self.most)
            columns, rows = (max(math.floor(side / scale / self.unit), 1) for side in (width, height))
        elif pixels < self.fewest:
            scale = math.sqrt(self.fewest / (width * height))
            columns, rows = (math.ceil(side * scale / self.unit) for side in (width, height))
        return columns * rows


@dataclass(frozen=True)
class Kimi:
    """The rule of Kimi-K2.5: images are shrunk until they have few enough patches, then padded to whole positions."""

    patch: int
    """Pixels of a patch's side."""
    merge: int
    """Patches of a position's side."""
    most: int
    longest: int
    """Largest numbers of patches, of an image and of a side."""

    @classmethod
    def of(cls, settings: dict[str, Any]) -> Kimi:
        """Returns the rule of a `preprocessor_config.json`, as released or as transformers writes it."""
        media = settings.get("media_proc_cfg")
        if isinstance(media, dict):
            return cls(
                int(media.get("patch_size", 14)),
                int(media.get("merge_kernel_size", 2)),
                int(media.get("in_patch_limit", 16_384)),
                int(media.get("patch_limit_on_one_side", 512)),
            )
        size = settings.get("size") or {}
        return cls(
            int(settings.get("patch_size", 14)),
            int(settings.get("merge_size", 2)),
            int(settings.get("max_patches", 16_384)),
            int(size.get("max_height", 512)),
        )

    def count(self, width: int, height: int) -> int:
        longest, unit = self.longest * self.patch, self.patch * self.merge
        patches = max(height // self.patch, 1) * max(width // self.patch, 1)
        scale = min(1.0, math.sqrt(self.most / patches), longest / height, longest / width)
        sides = (int(min(max(side * scale, 1), longest)) for side in (width, height))
        columns, rows = (math.ceil(side / unit) for side in sides)
        return columns * rows


def sizes(settings: dict[str, Any]) -> Sizes | None:
    """Returns the rule of a `preprocessor_config.json`; nothing if the processor is unknown."""
    kind = str(settings.get("image_processor_type"))
    if isinstance(settings.get("media_proc_cfg"), dict) or kind.startswith("Kimi_K25ImageProcessor"):
        return Kimi.of(settings)
    return Qwen.of(settings) if kind.startswith("Qwen2VLImageProcessor") else None
