// Retrieval: the passages that share most words with the question become the prompt.
#include <algorithm>
#include <set>
#include <sstream>

#include "example.h"

namespace banyan::examples {

const std::vector<std::string> kPassages = {
    "The banyan is a fig whose branches grow roots of their own.",
    "Penguins are birds that swim and do not fly.",
    "Bread is made of flour, water, salt and yeast.",
    "Roots hold a tree in the ground and take up water.",
};

std::set<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> all;
  for (std::string word; stream >> word;) all.insert(word);
  return all;
}

std::vector<std::string> retrieve(const std::string& question, size_t count) {
  std::set<std::string> asked = words(question);
  std::vector<std::string> passages = kPassages;
  std::ranges::stable_sort(passages, std::ranges::greater(), [&](const std::string& passage) {
    return std::ranges::count_if(words(passage), [&](const auto& w) { return asked.contains(w); });
  });
  passages.resize(count);
  return passages;
}

void answer(State& s, const std::string& question) {
  s += "Answer from these passages.\n";
  for (const std::string& passage : retrieve(question, 2)) s += "- " + passage + "\n";
  s += "Question: " + question + "\nAnswer:";
  s += gen("answer", {.max_new_tokens = 32, .stop = {"\n"}});
}

}  // namespace banyan::examples

int main(int argc, char** argv) {
  using namespace banyan;
  examples::Example example(argc, argv);
  return examples::Example::show(example->run(
      [](State& s) { examples::answer(s, "What do the branches of a banyan grow?"); }));
}
