from enum import StrEnum


class FinishKind(StrEnum):
    ERRORED = "errored"
    INTERRUPTED = "interrupted"
    SUCCESS = "success"

    def __str__(self) -> str:
        return str(self.value)
