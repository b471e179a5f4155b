from enum import StrEnum


class StatusQueryType0Type(StrEnum):
    ACTIVE = "active"

    def __str__(self) -> str:
        return str(self.value)
