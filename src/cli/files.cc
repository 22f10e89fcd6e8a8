// The small commands on files of a sandbox: ls, cat, rm, mkdir, mv, stat. Copying is in cp.cc.
#include <unistd.h>

#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/remote_files.h"
#include "cli/sanitise.h"
#include "cli/table.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

constexpr std::array kPlainOptions{kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array kShowOptions{kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array kRemoveOptions{OptionSpec{"-r,--recursive", "", "directories too, with all they hold"}, kHostOption, kKeyOption,
                                    kKeyFileOption};
constexpr std::array kMakeOptions{OptionSpec{"-m,--mode", "MODE", "octal permissions, such as 755"}, kHostOption, kKeyOption,
                                  kKeyFileOption};

constexpr std::string_view kForm = "write it as ID:/path";

// All operands name files of one sandbox; the first says which, later ones may leave it out.
Result<std::vector<std::string>> paths_of(const std::vector<std::string>& operands, std::string& sandbox) {
  std::vector<std::string> paths;
  for (const auto& operand : operands) {
    auto remote = parse_remote(operand);
    if (!remote && paths.empty()) return usage_error(cat("'", operand, "' names no sandbox"), kForm);
    if (!remote) remote = RemotePath{sandbox, operand};
    if (!sandbox.empty() && remote->sandbox != sandbox) return usage_error("the files are in different sandboxes", "one sandbox at a time");
    sandbox = remote->sandbox;
    paths.push_back(std::move(remote->path));
  }
  return paths;
}

struct Asked {
  Api api;
  std::optional<RemoteFiles> files;
  std::vector<std::string> paths;
};

Result<std::unique_ptr<Asked>> open(const Args& args, std::vector<std::string> operands) {
  std::string sandbox;
  TRY(auto paths, paths_of(operands, sandbox));
  TRY(auto api, find_daemon(args));
  auto asked = std::make_unique<Asked>(Asked{std::move(api), std::nullopt, std::move(paths)});
  TRY(auto files, RemoteFiles::open(asked->api, sandbox));
  asked->files.emplace(std::move(files));
  return asked;
}

std::string mode_text(const RemoteEntry& entry) {
  std::string out = entry.type == "directory" ? "d" : entry.type == "symlink" ? "l" : entry.type == "file" ? "-" : "?";
  for (int shift : {6, 3, 0}) {
    unsigned bits = entry.mode >> shift & 7;
    out += cat(bits & 4 ? 'r' : '-', bits & 2 ? 'w' : '-', bits & 1 ? 'x' : '-');
  }
  return out;
}

Result<int> show(const Args& args, const std::vector<RemoteEntry>& entries, bool whole_path) {
  if (wants_json(args)) {
    boost::json::array all;
    for (const auto& entry : entries) all.push_back(entry.all);
    CHECK_OK(print(pretty(all)));
    return kExitOk;
  }
  Table table({"MODE", "OWNER", "GROUP", "SIZE", "MODIFIED", "NAME"});
  for (const auto& entry : entries) {
    auto name = whole_path ? entry.path : entry.path.substr(entry.path.rfind('/') + 1);
    table.row({mode_text(entry), text_of(entry.all, "owner"), text_of(entry.all, "group"), cat(entry.size),
               text_of(entry.all, "modified_at").substr(0, 19), name});
  }
  if (!table.empty()) CHECK_OK(print(table.render()));
  return kExitOk;
}

Result<int> list(const Args& args) {
  auto operand = args.operands[0];
  if (!operand.contains(':')) operand += ":.";  // the directory commands begin in
  TRY(auto asked, open(args, {operand}));
  TRY(auto entry, asked->files->stat(asked->paths[0]));
  if (entry.type != "directory") return show(args, {std::move(entry)}, true);
  TRY(auto entries, asked->files->list(asked->paths[0], 1));
  return show(args, entries, false);
}

Result<int> stat(const Args& args) {
  TRY(auto asked, open(args, args.operands));
  std::vector<RemoteEntry> entries;
  for (const auto& path : asked->paths) {
    TRY(auto entry, asked->files->stat(path));
    entries.push_back(std::move(entry));
  }
  return show(args, entries, true);
}

Result<int> show_content(const Args& args) {
  TRY(auto asked, open(args, args.operands));
  for (const auto& path : asked->paths) {
    bool taken = true;
    CHECK_OK(asked->files->download(path, [&](std::string_view bytes) { return taken = write_all(STDOUT_FILENO, bytes); }));
    if (!taken) return Error(Errc::unavailable, "nobody takes the output");
  }
  return kExitOk;
}

Result<int> remove(const Args& args) {
  TRY(auto asked, open(args, args.operands));
  for (const auto& path : asked->paths) {
    TRY(auto entry, asked->files->stat(path));
    if (entry.type == "directory" && !args.has("recursive"))
      return Error(Errc::invalid_argument, cat(sanitise(path), " is a directory")).with_hint("-r removes it with all it holds");
  }
  CHECK_OK(args.has("recursive") ? asked->files->remove_trees(asked->paths) : asked->files->remove_files(asked->paths));
  return kExitOk;
}

Result<int> make_directory(const Args& args) {
  std::optional<unsigned> mode;
  if (args.has("mode")) {
    auto text = args.get("mode");
    auto digits = parse_int<unsigned>(text);
    if (!digits || *digits > 777 || *digits == 0 || text.find_first_of("89") != text.npos)
      return usage_error(cat("'", text, "' is no mode"), "three octal digits, such as 755");
    mode = from_octal_digits(*digits);
  }
  TRY(auto asked, open(args, args.operands));
  for (const auto& path : asked->paths) CHECK_OK(asked->files->make_directory(path, mode));
  return kExitOk;
}

Result<int> move(const Args& args) {
  TRY(auto asked, open(args, args.operands));
  auto to = asked->paths[1];
  auto there = asked->files->stat(to);
  if (there && there->type == "directory") {
    auto from = std::string_view(asked->paths[0]);
    while (from.size() > 1 && from.ends_with('/')) from.remove_suffix(1);
    to = cat(to, to.ends_with('/') ? "" : "/", from.substr(from.rfind('/') + 1));
  }
  CHECK_OK(asked->files->move(asked->paths[0], to));
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kFilesList{
    .name = "files ls",
    .also = {},
    .summary = "list a directory of a sandbox",
    .usage = "[options] ID[:PATH]",
    .details = "Without a path: the directory in which commands begin.",
    .examples = "opensandbox files ls 7k2:/tmp\nopensandbox files ls -o json 7k2",
    .options = kShowOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 1,
    .main = list,
};

constinit const CommandSpec kFilesCat{
    .name = "files cat",
    .also = {},
    .summary = "print files of a sandbox",
    .usage = "[options] ID:PATH...",
    .details = "The bytes come as they are; pipe them through `cat -v` when you do not trust them.",
    .examples = "opensandbox files cat 7k2:/etc/os-release",
    .options = kPlainOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 1000,
    .main = show_content,
};

constinit const CommandSpec kFilesRemove{
    .name = "files rm",
    .also = {},
    .summary = "remove files of a sandbox",
    .usage = "[-r] ID:PATH [PATH...]",
    .details = {},
    .examples = "opensandbox files rm 7k2:/tmp/a /tmp/b\nopensandbox files rm -r 7k2:/tmp/work",
    .options = kRemoveOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 1000,
    .main = remove,
};

constinit const CommandSpec kFilesMakeDirectory{
    .name = "files mkdir",
    .also = {},
    .summary = "make directories in a sandbox, with their parents",
    .usage = "[-m MODE] ID:PATH [PATH...]",
    .details = {},
    .examples = "opensandbox files mkdir -m 700 7k2:/tmp/a/b",
    .options = kMakeOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 1000,
    .main = make_directory,
};

constinit const CommandSpec kFilesMove{
    .name = "files mv",
    .also = {},
    .summary = "rename or move a file or directory of a sandbox",
    .usage = "[options] ID:FROM TO",
    .details = "Nothing is replaced. When TO is a directory, the name stays and it goes there.",
    .examples = "opensandbox files mv 7k2:/tmp/a /workspace/b",
    .options = kPlainOptions,
    .operand = Operand::sandbox,
    .min_operands = 2,
    .max_operands = 2,
    .main = move,
};

constinit const CommandSpec kFilesStat{
    .name = "files stat",
    .also = {},
    .summary = "show owner, mode, size and time of files of a sandbox",
    .usage = "[options] ID:PATH [PATH...]",
    .details = {},
    .examples = "opensandbox files stat 7k2:/tmp /etc/passwd",
    .options = kShowOptions,
    .operand = Operand::sandbox,
    .min_operands = 1,
    .max_operands = 1000,
    .main = stat,
};

}  // namespace osb::cli
