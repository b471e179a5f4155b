from enum import StrEnum


class StatusQueryType1Type(StrEnum):
    CANCELLED = "cancelled"

    def __str__(self) -> str:
        return str(self.value)
