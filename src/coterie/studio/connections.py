"""Time limits for what clients send: headers of a connection, and the body of a request."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
BLOCK_SECONDS = 20.0  # without a byte of a body
SLOWEST = 2**14  # bytes of a body per second, on average


class TimedProtocol(H11Protocol):
    """HTTP/1.1 that closes connections on which no complete request arrives in time.

    Without it, half-open connections would count against the limit of connections for ever.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self._answering():
            self._forget()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self._expire)

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if not self._answering() and not self.transport.is_closing():
            self.transport.close()


async def body(request: Request, most: int, too_large: str) -> AsyncIterator[bytes]:
    """The blocks of a body of at most ``most`` bytes, or an error if it is larger or stalls."""
    if int(request.headers.get("content-length") or 0) > most:
        raise HTTPException(413, too_large)
    blocks, began, size = aiter(request.stream()), time.monotonic(), 0
    while True:
        try:
            block = await asyncio.wait_for(anext(blocks), BLOCK_SECONDS)
        except StopAsyncIteration:
            return
        except asyncio.TimeoutError:
            raise HTTPException(408, "The upload stalled: try again.") from None
        size += len(block)
        if size > most:
            raise HTTPException(413, too_large)
        if time.monotonic() - began > BLOCK_SECONDS + size / SLOWEST:
            raise HTTPException(408, "The upload is too slow: try again with a better connection.")
        yield block
