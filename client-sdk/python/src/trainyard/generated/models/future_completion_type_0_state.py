from enum import StrEnum


class FutureCompletionType0State(StrEnum):
    FINISHED = "finished"

    def __str__(self) -> str:
        return str(self.value)
