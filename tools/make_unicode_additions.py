#!/usr/bin/env python3
"""Prints the rows of src/unicode/unicode_additions.cpp.

A row is a range of code points whose general category in Unicode 16 (what the `tokenizers` package
classifies by) is not the one of Unicode 14 (what PCRE2 10.42 and this Python classify by).

usage: make_unicode_additions.py     (Python 3.11 or 3.12, and the tokenizers package >= 0.21)
"""

import sys
import unicodedata

from tokenizers import Regex, pre_tokenizers

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Cf Co".split()
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def members(category):
    """The code points that the package's regex engine counts as \\p{category}."""
    split = pre_tokenizers.Split(Regex(r"\p{%s}" % category), "removed")
    found = set()
    for start in range(0, len(CODE_POINTS), 4096):
        block = CODE_POINTS[start : start + 4096]
        pieces = split.pre_tokenize_str("".join(map(chr, block)))
        found |= set(block) - {ord(char) for piece, _ in pieces for char in piece}
    return found


def main():
    if unicodedata.unidata_version != "14.0.0":
        sys.exit(f"this Python has Unicode {unicodedata.unidata_version}, 14.0.0 is needed")
    now = {code: category for category in CATEGORIES for code in members(category)}
    ranges = []
    for code in CODE_POINTS:
        category = now.get(code)
        if category is None or category == unicodedata.category(chr(code)):
            continue
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == category:
            ranges[-1][1] = code
        else:
            ranges.append([code, code, category])
    for first, last, category in ranges:
        print(f"    {{0x{first:X}, 0x{last:X}, UTF8PROC_CATEGORY_{category.upper()}}},")


if __name__ == "__main__":
    main()
