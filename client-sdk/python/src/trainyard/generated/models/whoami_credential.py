from enum import StrEnum


class WhoamiCredential(StrEnum):
    CONFIGURED_KEY = "configured_key"
    ISSUER = "issuer"
    KEY = "key"
    NONE = "none"

    def __str__(self) -> str:
        return str(self.value)
