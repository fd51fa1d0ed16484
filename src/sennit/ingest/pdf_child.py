"""The parser of PDF, run by `child_main.py`. It imports nothing from sennit."""

from importlib import import_module


def read(data: bytes, max_pages: int, max_characters: int) -> dict[str, object]:
    """Return the text of each page."""
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
