// Running an image's recipe (images/build): where recipes are, what a run says, how far it is.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/signals.h"

namespace osb::cli {

// The folder with `build` and the recipes: OPENSANDBOX_RECIPES, else installed beside this program or in its source tree.
Result<std::string> recipes_folder();

// The names in it, sorted.
std::vector<std::string> recipe_names(const std::string& folder);

// One line of a recipe's standard output: "stage 3 8 node" or "done NAME BYTES FOLDER". Anything else is nothing.
struct RecipeLine {
  unsigned stage = 0;  // 1..stages; 0: this is the done line
  unsigned stages = 0;
  std::string text;  // the stage, or the image's name
};
std::optional<RecipeLine> parse_recipe_line(std::string_view line);

// How far a build is, as one line for a terminal: "[######          ] 3/8 node 41s".
std::string recipe_bar(const RecipeLine& at, std::chrono::seconds spent);

struct RecipeRun {
  std::string program;             // <folder>/build
  std::vector<std::string> words;  // its arguments
  std::string log;                 // a file to be made: all it says beside its lines
};
// Runs it to its end and returns its done line. `tell` gets every stage as it begins and, about once a second, the same again.
// Words it does not know are Errc::invalid_argument: nothing was tried. A signal is passed on, and the answer waits until the recipe has
// cleaned up: Errc::unavailable, sys() == EINTR.
Result<RecipeLine> run_recipe(const RecipeRun& run, Signals& signals, const std::function<void(const RecipeLine&, bool again)>& tell);

}  // namespace osb::cli
