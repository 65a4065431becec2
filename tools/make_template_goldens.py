#!/usr/bin/env python3
"""Writes tests/golden/chat_template: what Hugging Face transformers makes of templates.

    tools/make_template_goldens.py [--templates ../shared/data/chat-templates]

Needs transformers and jinja2 (pip). Three files:
  snippets.jsonl       small templates by feature, each with its text or "error": true; the tool
                       fills in the results, so a new snippet is a new line {"template": "..."}.
                       They see the variables of snippet_variables.json.
  conversations.json   the inputs of the matrix, once
  renderings.json      {template file: {conversation: text, hash of the text, or error}}
Short renderings are kept whole; long ones as [byte count, FNV-1a hash], which the test computes
too. Errors are kept with their text where raise_exception gave it. The clock stands at
2024-07-26 12:34:56 UTC everywhere.
"""

import argparse
import datetime
import json
import os
import pathlib
import sys
import time

os.environ["TZ"] = "UTC"
time.tzset()
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import transformers.utils.chat_template_utils as hf

import template_conversations


class FixedDatetime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26, 12, 34, 56)


hf.datetime = FixedDatetime
WHOLE_BYTES_MAX = 100


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) % (1 << 64)
    return f"{value:016x}"


def render(source, variables):
    """(text, None) or (None, what was raised)."""
    try:
        text = hf._compile_jinja_template(source).render(**json.loads(json.dumps(variables)))
        text.encode()
        return text, None
    except Exception as error:
        return None, error


def snippet_lines(path, variables):
    for line in path.read_text().rstrip("\n").split("\n"):
        source = json.loads(line)["template"]
        text, error = render(source, variables)
        if text is not None and " at 0x" in text:  # an address: no two runs agree
            continue
        result = {"template": source}
        result.update({"error": True} if error else {"text": text})
        yield json.dumps(result, ensure_ascii=False)


def expectation(text, error):
    if error is not None:
        told = type(error).__name__ == "TemplateError"
        return {"error": str(error) if told else ""}
    data = text.encode()
    if len(data) <= WHOLE_BYTES_MAX:
        return text
    return [len(data), fnv1a(data)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--templates", default="../shared/data/chat-templates")
    parser.add_argument("--out", default="tests/golden/chat_template")
    args = parser.parse_args()
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    snippets = out / "snippets.jsonl"
    variables = json.loads((out / "snippet_variables.json").read_text())
    snippets.write_text("\n".join(list(snippet_lines(snippets, variables))) + "\n")

    conversations = template_conversations.conversations()
    lines = [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
             for name, value in conversations.items()]
    (out / "conversations.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")

    blocks = []
    for path in sorted(pathlib.Path(args.templates).glob("*.jinja")):
        source = path.read_text()
        rows = [f"  {json.dumps(name)}: "
                f"{json.dumps(expectation(*render(source, value)), ensure_ascii=False)}"
                for name, value in conversations.items()]
        blocks.append(f"{json.dumps(path.name)}: {{\n" + ",\n".join(rows) + "\n}")
    (out / "renderings.json").write_text("{\n" + ",\n".join(blocks) + "\n}\n")


if __name__ == "__main__":
    main()
