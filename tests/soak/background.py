"""Work on a thread of its own, for as long as a block lasts."""

import threading


class Background:
    """Runs `_work` of a subclass, which returns soon after `_ended` is set. The end of the block raises its exceptions."""

    def __init__(self, name: str):
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name)

    def _run(self):
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001
            self._error = error
            raise

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
