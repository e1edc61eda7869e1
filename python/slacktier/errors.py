"""What went wrong, by what the user can do about it; the programs give each its exit status."""


class UsageError(Exception):
    """Wrong usage or input: the message names option or file, and the fix. Exit status 2."""


class CheckFailed(Exception):
    """Something is not what it should be, and was found so. Exit status 1."""


class EnvironmentLacks(Exception):
    """The environment lacks something: the message names it, the limit and the command that fixes it. Exit status 3."""


class DeviceFailed(Exception):
    """A device or I/O failed. Exit status 4."""


def said(error):
    """What an exception of somebody else's says, in one line."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__
