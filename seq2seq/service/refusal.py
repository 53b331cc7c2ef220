"""What a request is refused for: a status, one line that names the value and the rule, and nothing of the inside."""

from collections.abc import Mapping


class Refusal(Exception):  # noqa: N818  # no error of the service
    """A request that is not answered; every door answers it as `{"error": message}`."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


def invalid(message: str) -> Refusal:
    """400: the request asks for what there is not, or not in the right way."""
    return Refusal(400, message)


def too_much(what: str, value: int, limit: int) -> Refusal:
    """413: more than the service takes at once."""
    return Refusal(413, f"{what}: {value:,} is over the limit of {limit:,}")


def later(status: int, message: str, seconds: float) -> Refusal:
    """429 or 503: not now; worth another try after so many seconds."""
    wait = max(1, round(seconds))
    return Refusal(status, f"{message}: try again in {wait} s", {"Retry-After": str(wait)})
