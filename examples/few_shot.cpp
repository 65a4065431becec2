// Few-shot classification: every question shares the examples, which are computed once.
#include "example.h"

namespace banyan::examples {

const std::string kShots =
    "Question: What is the largest planet?\nA. Mars\nB. Jupiter\nC. Venus\nAnswer: B\n\n"
    "Question: How many legs has a spider?\nA. Six\nB. Ten\nC. Eight\nAnswer: C\n\n"
    "Question: Which of these is a metal?\nA. Iron\nB. Wood\nC. Glass\nAnswer: A\n\n";

void classify(State& s, const std::string& question) {
  s += kShots + "Question: " + question + "\nAnswer:";
  s += select("answer", {" A", " B", " C"});
}

}  // namespace banyan::examples

int main(int argc, char** argv) {
  using namespace banyan;
  examples::Example example(argc, argv);
  std::vector<std::string> questions = {"Which is a fruit?\nA. Stone\nB. Apple\nC. Chair",
                                        "Which is cold?\nA. Ice\nB. Fire\nC. Steam",
                                        "Which can fly?\nA. Cow\nB. Fish\nC. Bird"};
  auto results =
      example->run_batch(questions, examples::classify, {.progress = progress_line("questions")});
  if (!results) return 1;
  for (size_t i = 0; i < questions.size(); ++i) {
    const BatchResult& result = (*results)[i];
    Result<std::string> answer = result.get("answer");
    std::printf("%s\n->%s (%lld of %lld prompt tokens cached)\n\n", questions[i].c_str(),
                answer ? answer->c_str() : answer.error().message.c_str(),
                static_cast<long long>(result.usage.cached_tokens),
                static_cast<long long>(result.usage.prompt_tokens));
    if (!answer) return 1;
  }
}
