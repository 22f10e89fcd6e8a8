#include "execd/kernels/kernelspec.h"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/text.h"
#include "execd/json.h"
#include "execd/small_file.h"

namespace osb::execd {
namespace {

constexpr std::size_t kMaxSpec = 64 * 1024;
constexpr int kMaxEntries = 256;

// Names a language goes by, best first, and what gives an image its kernel.
struct Known {
  std::string_view language;
  std::string_view names[4];
  std::string_view install;
};
constexpr Known kKnown[] = {
    {"python", {"python", "python3", "ipython"}, "ipykernel (apt-get install python3-ipykernel, or pip install ipykernel)"},
    {"javascript", {"javascript", "jslab"}, "tslab (npm install -g tslab && tslab install)"},
    {"typescript", {"typescript", "tslab"}, "tslab (npm install -g tslab && tslab install)"},
    {"java", {"java", "ijava"}, "a Java kernel such as IJava"},
    {"go", {"go", "gonb"}, "gonb (go install github.com/janpfeifer/gonb@latest && gonb --install)"},
    {"bash", {"bash"}, "bash_kernel (pip install bash_kernel && python3 -m bash_kernel.install)"},
};

const Known* find_known(std::string_view language) {
  auto* found = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& known) { return known.language == language; });
  return found == std::end(kKnown) ? nullptr : found;
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Lower is better; nullopt: another language.
std::optional<int> rank(const Kernelspec& spec, std::string_view language) {
  if (spec.name == language) return 0;
  int place = 1;
  if (const Known* known = find_known(language))
    for (std::string_view name : known->names) {
      if (!name.empty() && iequals(spec.name, name)) return place;
      ++place;
    }
  return iequals(spec.language, language) ? std::optional(place) : std::nullopt;
}

void look_into(const std::string& folder, std::string_view language, std::optional<Kernelspec>& best, int& best_rank) {
  std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  if (!listing) return;
  for (int i = 0; i < kMaxEntries; ++i) {
    const dirent* entry = ::readdir(listing.get());
    if (!entry) return;
    std::string name(entry->d_name);
    if (name.starts_with('.')) continue;
    auto text = read_small_file(cat(folder, "/", name, "/kernel.json"), kMaxSpec);
    auto spec = text ? parse_kernelspec(std::move(name), *text) : Result<Kernelspec>(std::move(text).error());
    auto place = spec ? rank(*spec, language) : std::nullopt;
    if (!place || *place >= best_rank) continue;
    best_rank = *place;
    best = *std::move(spec);
  }
}

void add_folder(std::vector<std::string>& folders, std::string_view base) {
  if (base.starts_with('/')) folders.push_back(cat(base, "/kernels"));
}

}  // namespace

bool Kernelspec::speaks_ipc() const { return file_name(argv.front()).starts_with("python"); }

bool Kernelspec::is_ipykernel() const {
  return speaks_ipc() && std::find(argv.begin(), argv.end(), "ipykernel_launcher") != argv.end() && argv.size() <= 5;
}

std::vector<std::string> kernelspec_folders(const Env& env, std::string_view home) {
  std::vector<std::string> folders;
  for (std::string_view base : split(value_of(env, "JUPYTER_PATH"), ':')) add_folder(folders, base);
  std::string_view own = value_of(env, "JUPYTER_DATA_DIR");
  add_folder(folders, own.empty() ? cat(home, "/.local/share/jupyter") : std::string(own));
  if (auto venv = value_of(env, "VIRTUAL_ENV"); !venv.empty()) add_folder(folders, cat(venv, "/share/jupyter"));
  add_folder(folders, "/usr/local/share/jupyter");
  add_folder(folders, "/usr/share/jupyter");
  return folders;
}

Result<Kernelspec> parse_kernelspec(std::string name, std::string_view json) {
  TRY(auto object, parse_object(json));
  Kernelspec spec;
  spec.name = std::move(name);
  TRY(spec.language, text_member(object, "language"));
  TRY(spec.argv, list_member(object, "argv"));
  TRY(spec.env, env_member(object, "env"));
  TRY(std::string mode, text_member(object, "interrupt_mode"));
  spec.interrupt_by_message = mode == "message";
  if (spec.argv.empty() || spec.argv.front().empty()) return Error(Errc::malformed, "the kernelspec names no program");
  return spec;
}

Result<Kernelspec> find_kernelspec(const Env& env, std::string_view home, std::string_view language) {
  std::optional<Kernelspec> best;
  int best_rank = 1000;
  for (const std::string& folder : kernelspec_folders(env, home)) look_into(folder, language, best, best_rank);
  if (best) return *std::move(best);
  const Known* known = find_known(language);
  std::string what = cat("language runtime server not configured: this image has no kernel for ", json_string(language.substr(0, 40)));
  what += known ? cat("; install ", known->install) : cat("; known languages are python, javascript, typescript, java, go and bash");
  return Error(Errc::not_found, std::move(what)).at("language");
}

}  // namespace osb::execd
