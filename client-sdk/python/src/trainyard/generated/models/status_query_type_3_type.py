from enum import StrEnum


class StatusQueryType3Type(StrEnum):
    CLIENT_FINISHED = "client_finished"

    def __str__(self) -> str:
        return str(self.value)
