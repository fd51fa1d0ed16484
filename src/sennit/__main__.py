"""`python -m sennit` is the program `sennit`."""

from sennit.apps.cli import main

if __name__ == "__main__":
    main()
