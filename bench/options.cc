#include "options.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>

namespace bench {
namespace {

constexpr const char* kUsage = R"(usage: ./dev bench [OPTIONS]

  --quick            fewer rounds, shorter rows, 100 sandboxes for density: under 50 s
  --only GROUP,...   lifecycle, exec, peers, throughput, startup, transfer, density
  --rounds N         interleaved rounds of the latency rows, three samples each (200; quick: 20)
  --pause MS         before every sample (3)
  --seconds S        of each throughput row (5; quick: 0.7)
  --sustain S        one more throughput row: 8 clients for S seconds
  --density N,...    sandboxes alive at once (100,1000; quick: 100)
  --start-docker     start an installed dockerd for the run, with its data in a folder of our own
  --url URL --key K  an OpenSandbox-compatible server as one more peer (--image NAME: what it is asked for)
  --json             JSON on standard output instead of tables
  --out DIR          also write bench.json, bench.md and the pictures there
  --write-docs       also put tables and pictures of this run into docs/performance.md
)";

[[noreturn]] void refuse(const std::string& what) {
  std::cerr << "bench: " << what << "\n" << kUsage;
  std::exit(2);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) out.push_back(word);
  return out;
}

double number(const std::string& option, const std::string& text, double least, double most) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(value >= least && value <= most))
    refuse(option + " " + text + ": a number from " + std::to_string(static_cast<long>(least)) + " to " +
           std::to_string(static_cast<long>(most)));
  return value;
}

void make_quick(Options& options) {
  options.quick = true;
  options.rounds.rounds = 20;
  options.rounds.seconds = 10;
  options.seconds = 0.7;
  options.density = {100};
  options.idle_seconds = 2;
  options.transfer_mib = 256;
}

void set(Options& options, const std::string& option, const std::string& value) {
  if (option == "--only") {
    for (const auto& group : split(value)) {
      if (std::ranges::find(kGroups, group) == kGroups.end()) refuse("no group '" + group + "'");
      options.only.insert(group);
    }
  } else if (option == "--rounds") {
    options.rounds.rounds = static_cast<int>(number(option, value, 1, 1e6));
  } else if (option == "--pause") {
    options.rounds.pause_ms = number(option, value, 0, 10'000);
  } else if (option == "--seconds") {
    options.seconds = number(option, value, 0.1, 3600);
  } else if (option == "--sustain") {
    options.sustain = number(option, value, 1, 86'400);
  } else if (option == "--density") {
    options.density.clear();
    for (const auto& count : split(value)) options.density.push_back(static_cast<int>(number(option, count, 1, 100'000)));
  } else if (option == "--out") {
    options.out = value;
  } else if (option == "--url") {
    options.url = value;
  } else if (option == "--key") {
    options.key = value;
  } else if (option == "--image") {
    options.image = value;
  } else {
    refuse("unknown option '" + option + "'");
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  Words words(argv + 1, argv + argc);
  options.command_line = "./dev bench";
  for (std::size_t index = 0; index < words.size(); ++index) {  // as it is shown: without the key, and without where it goes
    bool is_value = index > 0 && words[index - 1] == "--key";
    if (words[index] == "--out")
      ++index;
    else
      options.command_line += " " + (is_value ? "..." : words[index]);
  }
  if (std::ranges::find(words, "--quick") != words.end()) make_quick(options);  // first, so that the others win
  for (std::size_t index = 0; index < words.size(); ++index) {
    const auto& word = words[index];
    if (word == "--quick") continue;
    if (word == "--json")
      options.json = true;
    else if (word == "--start-docker")
      options.start_docker = true;
    else if (word == "--write-docs")
      options.write_docs = true;
    else if (word == "--help" || word == "-h")
      std::cout << kUsage, std::exit(0);
    else if (index + 1 < words.size())
      set(options, word, words[++index]);
    else
      refuse(word.starts_with("--") ? word + " is unknown or needs a value" : "unknown word '" + word + "'");
  }
  return options;
}

}  // namespace bench
