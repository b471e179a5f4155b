from enum import StrEnum


class LimitOrigin(StrEnum):
    DEFAULT = "default"
    FILE = "file"
    STORE = "store"

    def __str__(self) -> str:
        return str(self.value)
