"""A module without dependencies that the tests of the embedded interpreter call."""

import os
import signal
import time

from slacktier import errors


def add(first, second=2):
    return {"sum": first + second, "text": "größer"}


def nothing():
    print("printed by Python")


def not_json():
    return object()


def not_finite():
    return float("nan")


def fail(kind, message="the message"):
    raise getattr(errors, kind)(message)


def divide(by):
    return 1 / by


def needs(package):
    __import__(package)


def open_file(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def broken():
    raise ImportError("a library of another version")


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)


def packages():
    import sys

    return sys.path
