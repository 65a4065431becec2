// Branch, solve, merge: an essay is judged in three respects at once, then graded.
#include "example.h"

namespace banyan::examples {

void judge(State& s, const std::string& essay) {
  const std::vector<std::string> respects = {"clarity", "depth", "style"};
  s += system("You are a strict judge of essays.");
  s += user("Essay: " + essay);
  std::vector<State> branches = s.fork(static_cast<int>(respects.size()));
  for (size_t i = 0; i < respects.size(); ++i) {
    branches[i] += user("Judge its " + respects[i] + " in one sentence.");
    branches[i] += assistant(gen("verdict", {.max_new_tokens = 40}));
  }
  s += user("Verdicts:\n" + join_text(branches, "verdict") + "\nWhat grade do you give?");
  s += assistant(select("grade", {"A", "B", "C", "D"}));
}

}  // namespace banyan::examples

int main(int argc, char** argv) {
  using namespace banyan;
  examples::Example example(argc, argv);
  std::string essay = "The sea is big. It has many fish. I like to look at it in the morning.";
  return examples::Example::show(example->run([&](State& s) { examples::judge(s, essay); }));
}
