"""`taskmill` and `python -m taskmill`."""

from taskmill.cli.app import app


def main() -> None:
    app()


if __name__ == "__main__":
    main()
