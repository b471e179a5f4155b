from enum import StrEnum


class ReplyBlockType2Type(StrEnum):
    TOOL_USE = "tool_use"

    def __str__(self) -> str:
        return str(self.value)
