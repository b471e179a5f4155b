from enum import StrEnum


class ReplyBlockType0Type(StrEnum):
    TEXT = "text"

    def __str__(self) -> str:
        return str(self.value)
