// Tree of thought on the game of 24: steps are proposed, weighed, and the best are followed.
#include <algorithm>

#include "example.h"

namespace banyan::examples {

constexpr int kDepth = 2, kWidth = 3, kKept = 2;

// How promising a state is: the logprob of "sure" against "impossible".
double promise(const State& s) {
  Result<CallInfo> info = s.info("verdict");
  return info ? info->choices[0].weight - info->choices[1].weight : -1e9;
}

void solve(State& s) {
  s += "Use the numbers 4, 6, 8 and 2 once each with + - * / to make 24.\n";
  std::vector<State> front = {s};
  for (int depth = 0; depth < kDepth; ++depth) {
    std::vector<State> next;
    for (State& state : front) {
      for (State& step : state.fork(kWidth)) {
        step += "Step:" + gen("step", {.max_new_tokens = 24, .stop = {"\n"}},
                              SamplingParams{.temperature = 0.8F});
        step += "\nCan 24 still be reached?" + select("verdict", {" sure", " impossible"}) + "\n";
        next.push_back(step);
      }
    }
    for (const State& state : next) (void)state.get("verdict");  // all are on their way by now
    std::ranges::stable_sort(next, std::ranges::greater(), promise);
    next.erase(next.begin() + kKept, next.end());
    front = std::move(next);
  }
  s.set("best", front.front()["step"]);
  s += "The best last step:" + s["best"] + "\nAnswer:" + gen("answer", {.max_new_tokens = 24});
}

}  // namespace banyan::examples

int main(int argc, char** argv) {
  banyan::examples::Example example(argc, argv);
  return banyan::examples::Example::show(example->run(banyan::examples::solve));
}
