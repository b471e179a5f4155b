from enum import StrEnum


class SamplerKind(StrEnum):
    INFLIGHT = "inflight"
    SNAPSHOT = "snapshot"

    def __str__(self) -> str:
        return str(self.value)
