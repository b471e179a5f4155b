"""A worker whose ranks are processes, under a supervisor that starts again what has ended."""

import math
import os
import threading

from deployment import RoleCluster
from process import Process, free_port


class RankCluster(RoleCluster):
    """An API server, and a worker whose ranks are processes."""

    def __init__(self, folder, database, models=None, dtype="f32", layout="tp=2", storage=None, worker_flags=()):
        self.layout = layout
        flags = ["--parallel", layout, "--threads", "1", *worker_flags]
        super().__init__(folder, database, models, dtype, flags=flags, apis=1, workers=1, storage=storage)
        (first,) = self.workers
        world = math.prod(int(axis.partition("=")[2]) for axis in layout.split(","))
        meeting = ["--world", str(world), "--rendezvous", f"127.0.0.1:{free_port()}"]
        for rank in range(1, world):
            command = [*first.command, "--rank", str(rank), *meeting]
            follower = Process(f"rank-{rank}", command, folder / f"rank-{rank}.log", cwd=folder)
            self.workers.append(follower)
            self.processes.append(follower)
        first.command += ["--rank", "0", *meeting]
        if os.environ.get("TRAINYARD_DEVICE", "cpu") == "cuda":
            for rank, process in enumerate(self.workers):
                process.command += ["--device", f"cuda:{rank}"]
        self.ended: list[tuple[str, int]] = []
        """Name and exit code of each process that the supervisor has started again."""
        self._done = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, name="supervisor")

    def supervise(self):
        """From here on ranks that end are started again."""
        self._supervisor.start()
        return self

    def _supervise(self):
        while not self._done.wait(0.05):
            for process in self.workers:
                if not process.alive():
                    self.ended.append((process.name, process.child.returncode))
                    process.start()

    def _unsupervised(self):
        self._done.set()
        if self._supervisor.is_alive():
            self._supervisor.join()

    def stop(self, limit=30.0) -> int:
        """SIGTERM to all at once, as a machine that shuts down sends it: ranks end together."""
        self._unsupervised()
        stopping = [threading.Thread(target=process.stop, args=(limit,)) for process in self.processes]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        return next((code for code in (process.child.returncode for process in self.processes) if code != 0), 0)

    def close(self):
        self._unsupervised()
        super().close()
