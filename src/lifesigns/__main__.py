"""`python -m lifesigns`."""

from lifesigns.cli import run

if __name__ == "__main__":
    run()
