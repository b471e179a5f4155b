"""Work on a thread of its own, for as long as a block lasts."""

import threading


class Background:
    """Subclasses define `_work`, which returns soon after `_ended` is set."""

    def __init__(self, name: str):
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
