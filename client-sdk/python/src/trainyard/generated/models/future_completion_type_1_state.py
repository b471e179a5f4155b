from enum import StrEnum


class FutureCompletionType1State(StrEnum):
    FAILED = "failed"

    def __str__(self) -> str:
        return str(self.value)
