from enum import StrEnum


class SearchOwnerType2Type(StrEnum):
    USER = "user"

    def __str__(self) -> str:
        return str(self.value)
