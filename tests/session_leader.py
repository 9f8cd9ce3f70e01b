"""Run as a program, it is roomlore as the leader of a session: of its own, or of the terminal whose name comes first.

What ends a whole group of processes must not end the one it was forked from.
"""

import fcntl
import os
import runpy
import sys
import termios

os.setsid()
if sys.argv[1].startswith("/dev/"):
    terminal = os.open(sys.argv.pop(1), os.O_RDWR)
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(terminal, number)
    os.close(terminal)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode, 1, closefd=False) for n, mode in enumerate("rww"))
runpy.run_module("roomlore", run_name="__main__")
