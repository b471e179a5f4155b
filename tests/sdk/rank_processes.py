"""A worker whose ranks are processes, under a supervisor that starts again what has ended."""

import threading

from deployment import RoleCluster
from process import Process, free_port


class RankCluster(RoleCluster):
    """An API server, and a worker of two ranks that are processes."""

    def __init__(self, folder, database, models=None, dtype="f32"):
        flags = ["--parallel", "tp=2", "--threads", "1"]
        super().__init__(folder, database, models, dtype, flags=flags, apis=1, workers=1)
        (first,) = self.workers
        meeting = ["--world", "2", "--rendezvous", f"127.0.0.1:{free_port()}"]
        follower = Process("rank-1", [*first.command, "--rank", "1", *meeting], folder / "rank-1.log", cwd=folder)
        first.command += ["--rank", "0", *meeting]
        self.workers.append(follower)
        self.processes.append(follower)
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
