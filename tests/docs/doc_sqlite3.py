"""In the place of SQLite's own program, where there is none: the same copy, by the same function of SQLite."""

import re
import sqlite3
import sys

if __name__ == "__main__":
    source, target = sqlite3.connect(sys.argv[1]), re.fullmatch(r"\.backup '(.+)'", sys.argv[2]).group(1)
    with sqlite3.connect(target) as copy:
        source.backup(copy)
