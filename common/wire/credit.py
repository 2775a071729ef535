"""How much one peer may have unanswered. Both ends keep the same account; the reply to a request returns its bytes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """`num_bytes` of headers and buffers, `num_requests` messages. A message over `num_bytes` can never be sent."""

    num_bytes: int = 64 * 2**20
    num_requests: int = 1024


class Credit:
    """Numbers of unanswered requests and their sizes."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self._sizes: dict[int, int] = {}
        self.num_bytes = 0

    def __contains__(self, number: int) -> bool:
        return number in self._sizes

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(self._sizes)

    def take(self, number: int, size: int) -> bool:
        """False if the window is too full. What has been taken is not taken twice."""
        if number in self._sizes:
            return True
        full = len(self._sizes) >= self.window.num_requests
        if full or self.num_bytes + size > self.window.num_bytes:
            return False
        self._sizes[number] = size
        self.num_bytes += size
        return True

    def give(self, number: int) -> None:
        self.num_bytes -= self._sizes.pop(number, 0)
