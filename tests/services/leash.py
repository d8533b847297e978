"""Runs a server that must not outlive whoever started it.

`python leash.py SIGNAL UID:GID COMMAND…` starts the command (as another user, where one
is given) and sends it the signal when standard input ends. The pipe closes when the tests are done,
and also when they are killed, which is why it is a pipe and not a signal handler.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time

PATIENCE = 15.0


def main() -> int:
    ending, user, *command = sys.argv[1:]
    identity = {}
    if user:
        uid, gid = (int(number) for number in user.split(":"))
        identity = {"user": uid, "group": gid, "extra_groups": []}
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, **identity)

    def end_with_input() -> None:
        sys.stdin.buffer.read()
        server.send_signal(int(ending))
        time.sleep(PATIENCE)
        server.kill()

    threading.Thread(target=end_with_input, daemon=True).start()
    return server.wait()


if __name__ == "__main__":
    sys.exit(main())
