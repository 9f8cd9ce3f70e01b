"""`python -m roomlore` is the program `roomlore`."""

from roomlore.surfaces.cli import main

if __name__ == "__main__":
    main()
