"""slacktier-probe in this interpreter: `python -m slacktier.probe windows ...`, with the packages that are installed here."""

import sys


def main(arguments=None):
    from slacktier import _native

    return _native.probe(["slacktier-probe", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
