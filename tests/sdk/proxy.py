"""A TCP proxy that stands in for a network: it balances connections over targets, and drops all traffic on request."""

import asyncio
import contextlib
import threading


class Proxy:
    """Listens on a port of its own. A connection goes to the next target, in turns, that accepts it."""

    def __init__(self, *targets: int):
        self.targets = targets
        self.port = 0
        self._next = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="proxy")

    def start(self):
        self._thread.start()
        self.port = self._run(self._listen())
        return self

    def cut(self):
        """From now on nothing passes, in either direction, not even the end of a connection."""
        self._run(self._set(False))

    def heal(self):
        """Delivers the traffic that was held back, as a network does that retransmits."""
        self._run(self._set(True))

    def lose(self):
        """From now on nothing passes on the connections that there are, as when a firewall forgot them; new ones work."""
        self._run(self._lose())

    def stop(self):
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, task):
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(30)

    async def _listen(self) -> int:
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task] = set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=4096)
        return self._server.sockets[0].getsockname()[1]

    async def _set(self, is_open: bool):
        (self._open.set if is_open else self._open.clear)()

    async def _lose(self):
        lost, self._open = self._open, asyncio.Event()
        self._open.set()
        lost.clear()

    async def _close(self):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # `stop` cancels what is left.
        with contextlib.closing(writer), contextlib.suppress(asyncio.CancelledError):
            is_open = self._open
            await is_open.wait()
            connected = await self._connect()
            if connected is None:
                return
            with contextlib.closing(connected[1]):
                ways = [self._pass(reader, connected[1], is_open), self._pass(connected[0], writer, is_open)]
                ways = [asyncio.create_task(way) for way in ways]
                try:
                    # Either end closes both: what a killed process leaves is closed for its peer at once.
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                    await is_open.wait()
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)

    async def _connect(self):
        for _ in self.targets:
            target = self.targets[self._next % len(self.targets)]
            self._next += 1
            with contextlib.suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", target)
        return None

    async def _pass(self, reader, writer, is_open):
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await is_open.wait()
                writer.write(data)
                await writer.drain()
