"""The frame of an HTML file that needs nothing else: no network, no library."""

from html import escape

# A saved page may hold anybody's text: whatever it says, nothing is loaded.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def html_page(title: str, body: str, *, look: str, style: str, script: str) -> str:
    """A complete file; `title` is text, the rest is HTML, CSS and JavaScript. `look` is the class of the body."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body class="{look}">
{body}
<script>
{script}</script>
</body>
</html>
"""
