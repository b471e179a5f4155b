from enum import StrEnum


class UsageInfoType4Type(StrEnum):
    STORAGE = "storage"

    def __str__(self) -> str:
        return str(self.value)
