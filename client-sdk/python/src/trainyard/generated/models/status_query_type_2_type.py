from enum import StrEnum


class StatusQueryType2Type(StrEnum):
    FAILED = "failed"

    def __str__(self) -> str:
        return str(self.value)
