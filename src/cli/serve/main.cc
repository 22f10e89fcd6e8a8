// opensandbox-serve: `opensandbox serve`, in the program that links the daemon.
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/serve_here.h"

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  return osb::cli::run_program(words, osb::cli::serve_here);
}
