from enum import StrEnum


class TensorDtype(StrEnum):
    FLOAT32 = "float32"
    INT64 = "int64"

    def __str__(self) -> str:
        return str(self.value)
