from enum import StrEnum


class ReplyBlockType1Type(StrEnum):
    THINKING = "thinking"

    def __str__(self) -> str:
        return str(self.value)
