from enum import StrEnum


class UsageInfoType2Type(StrEnum):
    SAMPLING_SAMPLE = "sampling_sample"

    def __str__(self) -> str:
        return str(self.value)
