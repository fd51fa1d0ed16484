"""A child process with resource limits: reads one file from standard input with the parser of its format.

Every parser of a packed format has had vulnerabilities. A crash, an endless loop or unbounded memory use ends with this
process. The file is run as a script, and imports nothing from sennit; neither does the parser, a script that defines
`read(data, *limits)` and returns what is written as JSON.
"""

import json
import runpy
import sys


def main() -> None:
    """Set the resource limits, then run the parser."""
    parser, *numbers = sys.argv[1:]
    seconds, memory, *limits = map(int, numbers)
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    read = runpy.run_path(parser)["read"]
    sys.stdout.write(json.dumps(read(sys.stdin.buffer.read(), *limits)))


if __name__ == "__main__":
    main()
