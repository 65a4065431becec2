// Skeleton of thought: the points of an answer first, then each of them at the same time.
#include "example.h"

namespace banyan::examples {

void explain(State& s) {
  s += "Question: How does one grow tomatoes?\nThree short points, one a line:\n";
  constexpr int kPoints = 3;
  for (int i = 1; i <= kPoints; ++i) {
    std::string number = std::to_string(i);
    s += number + "." + gen("point" + number, {.max_new_tokens = 16, .stop = {"\n"}}) + "\n";
  }
  std::vector<State> branches = s.fork(kPoints);
  for (int i = 0; i < kPoints; ++i) {
    std::string number = std::to_string(i + 1);
    branches[i] += "Point " + number + " in more words:";
    branches[i] += gen("detail", {.max_new_tokens = 40, .stop = {"\n"}});
  }
  s += "The whole answer:\n" + join_text(branches, "detail") + "\n";
}

}  // namespace banyan::examples

int main(int argc, char** argv) {
  banyan::examples::Example example(argc, argv);
  return banyan::examples::Example::show(example->run(banyan::examples::explain));
}
