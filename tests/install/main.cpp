// Loads a model through the installed headers and libraries, and prints its output.
#include <banyan/llm.h>
#include <banyan/options.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto config = banyan::parse_engine_options({"--model", argv[1]});
  if (!config) return std::fputs(config.error().message.c_str(), stderr), 1;
  auto llm = banyan::Llm::load(*config);
  if (!llm) return std::fputs(llm.error().message.c_str(), stderr), 1;
  auto reply = (*llm)->generate({.text = "Once upon a time"});
  if (!reply) return std::fputs(reply.error().message.c_str(), stderr), 1;
  std::puts(reply->text.c_str());
}
