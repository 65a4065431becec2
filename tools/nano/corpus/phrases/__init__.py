"""Phrases and words that are kept as text: sections with a heading in brackets, a bar between two
phrases, lines broken anywhere after a bar. Lines that begin with # are remarks."""

from pathlib import Path


def phrases(text):
    return [" ".join(phrase.split()) for phrase in text.split("|")]


def read(name):
    """phrases/NAME.txt -> section -> its phrases, in their order."""
    sections = {}
    for line in (Path(__file__).parent / f"{name}.txt").read_text().splitlines():
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            sections[section] = ""
        elif line and not line.startswith("#"):
            sections[section] += line
    return {section: phrases(text) for section, text in sections.items()}
