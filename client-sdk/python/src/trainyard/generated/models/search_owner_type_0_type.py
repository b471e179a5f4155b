from enum import StrEnum


class SearchOwnerType0Type(StrEnum):
    OWN = "own"

    def __str__(self) -> str:
        return str(self.value)
