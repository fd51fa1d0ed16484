"""A child process with resource limits: reads one PDF from standard input and writes its pages as JSON.

Every PDF parser has had vulnerabilities. A crash, an endless loop or unbounded memory use ends with this process. The
file is run as a script, and imports nothing from sennit.
"""

import json
import sys
from importlib import import_module


def main() -> None:
    """Set the resource limits, then read the PDF."""
    seconds, memory, max_pages, max_characters = (int(argument) for argument in sys.argv[1:5])
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.write(json.dumps(_read_pages(sys.stdin.buffer.read(), max_pages, max_characters)))


def _read_pages(data: bytes, max_pages: int, max_characters: int) -> dict[str, object]:
    try:
        pypdfium2 = import_module("pypdfium2")
        raw = import_module("pypdfium2.raw")
    except ImportError:
        return {"missing": True}
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError:
        encrypted = raw.FPDF_GetLastError() == raw.FPDF_ERR_PASSWORD
        return {"problem": "a PDF that needs a password" if encrypted else "a PDF that cannot be read"}
    if len(document) > max_pages:
        return {"problem": f"a PDF of {len(document):,} pages; the limit is {max_pages:,}"}
    pages = []
    characters = 0
    broken = 0
    for number in range(len(document)):
        try:
            page = document[number]
            text = page.get_textpage().get_text_range()
            page.close()
        except pypdfium2.PdfiumError:
            broken += 1
            text = ""
        characters += len(text)
        if characters > max_characters:
            return {"problem": f"a PDF with more than {max_characters:,} characters of text"}
        pages.append(text)
    return {"pages": pages, "broken": broken}


if __name__ == "__main__":
    main()
