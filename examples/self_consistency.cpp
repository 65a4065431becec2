// Self-consistency: several sampled lines of thought vote on the answer.
#include <map>

#include "example.h"

namespace banyan::examples {

void vote(State& s) {
  s += "Question: A box has 3 rows of 4 eggs. Two break. How many are whole?\n";
  std::vector<State> branches = s.fork(5);
  for (State& branch : branches) {
    branch += "Thought:" + gen("thought", {.max_new_tokens = 32, .stop = {"\n"}},
                               SamplingParams{.temperature = 0.8F});
    branch += "\nThe number is " + gen("number", {.grammar = GrammarSource::regex("[0-9]{1,3}")});
  }
  std::map<std::string, int> votes;
  for (const State& branch : branches) ++votes[branch["number"]];
  std::string best;
  for (const auto& [number, count] : votes) {
    if (best.empty() || count > votes[best]) best = number;
  }
  s.set("answer", best);
  s += "Answer: " + best + " (" + std::to_string(votes[best]) + " of 5 votes)\n";
}

}  // namespace banyan::examples

int main(int argc, char** argv) {
  banyan::examples::Example example(argc, argv);
  return banyan::examples::Example::show(example->run(banyan::examples::vote));
}
