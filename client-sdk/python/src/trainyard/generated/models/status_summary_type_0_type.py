from enum import StrEnum


class StatusSummaryType0Type(StrEnum):
    ACTIVE = "active"

    def __str__(self) -> str:
        return str(self.value)
