// A conversation of several turns; each prompt begins with the one before.
#include "example.h"

namespace banyan::examples {

void chat(State& s) {
  s += system("You are a helpful assistant.");
  for (const char* question :
       {"Name a city by the sea.", "What can one do there?", "And in winter?"}) {
    s += user(question);
    s += assistant(gen("answer", {.max_new_tokens = 48}));
  }
}

}  // namespace banyan::examples

int main(int argc, char** argv) {
  banyan::examples::Example example(argc, argv);
  return banyan::examples::Example::show(example->run(banyan::examples::chat));
}
