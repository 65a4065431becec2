#include <CLI/CLI.hpp>

int main(int argc, char** argv) {
  CLI::App app{"Banyan"};
  CLI11_PARSE(app, argc, argv);
}
