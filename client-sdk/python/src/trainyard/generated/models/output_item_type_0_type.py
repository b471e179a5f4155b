from enum import StrEnum


class OutputItemType0Type(StrEnum):
    REASONING = "reasoning"

    def __str__(self) -> str:
        return str(self.value)
