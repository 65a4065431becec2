// ReAct: the model thinks, calls a calculator, sees the result, and goes on until it answers.
#include "example.h"

namespace banyan::examples {

// "12*34" -> "408"; the tool.
std::string calculate(const std::string& expression) {
  char operation = 0;
  long a = 0, b = 0;
  if (std::sscanf(expression.c_str(), "%ld%c%ld", &a, &operation, &b) != 3) return "not a sum";
  switch (operation) {
    case '+':
      return std::to_string(a + b);
    case '-':
      return std::to_string(a - b);
    case '*':
      return std::to_string(a * b);
    default:
      return "unknown operation";
  }
}

void agent(State& s) {
  constexpr int kSteps = 3;
  s += "Answer with the help of a calculator.\nQuestion: What is 12 times 34, plus 5?\n";
  for (int step = 0; step < kSteps; ++step) {
    s += "Thought:" + gen("thought", {.max_new_tokens = 24, .stop = {"\n"}});
    s += "\nAction:" + select("action", {" calculate", " finish"});
    if (s["action"] == " finish") break;
    s += "\nInput: " + gen("input", {.grammar = GrammarSource::regex("[0-9]{1,4}[-+*][0-9]{1,4}")});
    s += "\nObservation: " + calculate(s["input"]) + "\n";
  }
  s += "\nAnswer:" + gen("answer", {.max_new_tokens = 16, .stop = {"\n"}});
}

}  // namespace banyan::examples

int main(int argc, char** argv) {
  banyan::examples::Example example(argc, argv);
  return banyan::examples::Example::show(example->run(banyan::examples::agent));
}
