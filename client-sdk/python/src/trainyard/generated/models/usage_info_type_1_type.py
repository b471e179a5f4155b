from enum import StrEnum


class UsageInfoType1Type(StrEnum):
    SAMPLING_PREFILL = "sampling_prefill"

    def __str__(self) -> str:
        return str(self.value)
