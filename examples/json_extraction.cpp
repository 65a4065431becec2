// A text's facts as JSON that is valid by its schema.
#include "example.h"

namespace banyan::examples {

constexpr const char* kSchema = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 20},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "married": {"type": "boolean"}
  },
  "required": ["name", "age", "married"],
  "additionalProperties": false
})";

void extract(State& s) {
  s += "Text: Ada is 36 years old and lives with her husband in London.\nThe person as JSON: ";
  s += gen("person", {.max_new_tokens = 80, .grammar = GrammarSource::json_schema(kSchema)});
}

}  // namespace banyan::examples

int main(int argc, char** argv) {
  banyan::examples::Example example(argc, argv);
  return banyan::examples::Example::show(example->run(banyan::examples::extract));
}
