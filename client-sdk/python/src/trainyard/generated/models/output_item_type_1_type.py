from enum import StrEnum


class OutputItemType1Type(StrEnum):
    MESSAGE = "message"

    def __str__(self) -> str:
        return str(self.value)
