"""The one error that is shown to a user as a single line."""


class UserError(ValueError):
    """Input that cannot be used; the message names the value, the rule and, where it helps, what to do."""


def first_line(error: BaseException) -> str:
    """What an error of a library says, as the one line that a user gets; its kind if it says nothing."""
    return (str(error).strip() or type(error).__name__).split("\n")[0]
