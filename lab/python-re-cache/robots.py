"""robots.py KEPT: says whether a visitor is a robot, by 600 patterns, which are compiled once if KEPT is yes."""
import re
import sys

import web

PATTERNS = [rf"(?i)\b(robot|spider|crawler){n}[-/ ]v?(\d+)\.(\d+)?" for n in range(600)]
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
searches = [re.compile(pattern).search for pattern in PATTERNS]


def robot():
    if sys.argv[1] == "yes":
        return any(search(BROWSER) for search in searches)
    return any(re.search(pattern, BROWSER) for pattern in PATTERNS)


def work():
    return b"a robot\n" if robot() else b"somebody\n"


web.serve(8000, work)
