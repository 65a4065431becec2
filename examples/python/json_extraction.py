"""Facts out of texts, as JSON that a schema calls valid."""

import json

import banyan as sgl
from common import choose_backend

SCHEMA = {"type": "object",
          "properties": {"name": {"type": "string", "maxLength": 30},
                         "age": {"type": "integer", "minimum": 0, "maximum": 130},
                         "city": {"type": "string", "maxLength": 30}},
          "required": ["name", "age", "city"], "additionalProperties": False}
TEXTS = ["Maria, who is 34, lives in Lisbon.",
         "In Oslo, a man of 71 called Jan repairs boats.",
         "My neighbour Yuki moved here from Kyoto when she was 28."]


@sgl.function
def extract(s, text):
    s += f"Text: {text}\nThe person in it, as JSON: "
    s += sgl.gen("person", max_tokens=96, temperature=0, json_schema=SCHEMA)


if __name__ == "__main__":
    choose_backend()
    for state in extract.run_batch([{"text": text} for text in TEXTS]):
        print(json.loads(state["person"]))
