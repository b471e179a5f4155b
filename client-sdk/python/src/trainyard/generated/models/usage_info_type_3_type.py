from enum import StrEnum


class UsageInfoType3Type(StrEnum):
    CHECKPOINT = "checkpoint"

    def __str__(self) -> str:
        return str(self.value)
