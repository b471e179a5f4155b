from enum import StrEnum


class UsageInfoType0Type(StrEnum):
    TRAINING = "training"

    def __str__(self) -> str:
        return str(self.value)
