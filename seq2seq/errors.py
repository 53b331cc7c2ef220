"""The one error that is shown to a user as a single line."""


class UserError(ValueError):
    """Input that cannot be used; the message names the value, the rule and, where it helps, what to do."""
