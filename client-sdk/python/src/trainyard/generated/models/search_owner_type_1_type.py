from enum import StrEnum


class SearchOwnerType1Type(StrEnum):
    ACCESSIBLE = "accessible"

    def __str__(self) -> str:
        return str(self.value)
