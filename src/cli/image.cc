#include <limits.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cstdlib>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/each.h"
#include "cli/exit_code.h"
#include "cli/find_daemon.h"
#include "cli/image_import.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "http/http.h"

namespace osb::cli {
namespace json = boost::json;
namespace {

constexpr std::array kListOptions{kQuietOption, kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array kImportOptions{OptionSpec{"-n,--name", "NAME", "what to call it (default: the name in the archive)"}, kOutputOption,
                                    kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array kRemoveOptions{kOutputOption, kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array kPruneOptions{OptionSpec{"-a,--all", "", "named images too, unless a sandbox runs on them"}, kOutputOption,
                                   kHostOption, kKeyOption, kKeyFileOption};
constexpr std::array<std::string_view, 2> kListAlso{"image list", "images"};
constexpr std::array<std::string_view, 1> kRemoveAlso{"image remove"};

std::string as_text(const Args& args, const json::array& images) {
  if (wants_json(args)) return pretty(images);
  Table table({"NAME", "DIGEST", "LAYERS", "SIZE", "CREATED"});
  std::string names;
  for (const auto& item : images) {
    if (!item.is_object()) continue;
    const auto& image = item.get_object();
    names += cat(text_of(image, "name"), "\n");
    table.row({text_of(image, "name"), text_of(image, "digest").substr(0, 19), cat(number_of(image, "layers")),
               format_bytes(number_of(image, "sizeBytes")), format_when(text_of(image, "createdAt"), wall_now())});
  }
  return args.has("quiet") ? names : table.render();
}

Result<int> list_images(const Args& args) {
  TRY(auto api, find_daemon(args));
  TRY(auto reply, api.call("GET", "/v1/images"));
  TRY(auto object, parse_object(reply.body));
  const auto* items = object.if_contains("items");
  if (items == nullptr || !items->is_array()) return Error(Errc::malformed, "the daemon's list has no items");
  CHECK_OK(print(as_text(args, items->get_array())));
  return kExitOk;
}

Result<int> import_image(const Args& args) {
  if (args.has("name") && args.get("name").empty()) return usage_error("--name needs a name");
  char path[PATH_MAX];
  if (::realpath(args.operands[0].c_str(), path) == nullptr) return Error::from_errno(args.operands[0], errno, Errc::not_found);
  TRY(auto image, import_archive(args, path, args.get("name")));
  CHECK_OK(print(wants_json(args) ? pretty(image) : cat(text_of(image, "name"), "\n")));
  return kExitOk;
}

Result<int> remove_images(const Args& args) {
  TRY(auto api, find_daemon(args));
  return for_each_name(args, args.operands, [&](const std::string& name) -> Result<std::string> {
    TRY([[maybe_unused]] auto reply, api.call("DELETE", cat("/v1/images/", http::percent_encode(name))));
    return name;
  });
}

Result<int> inspect_images(const Args& args) {
  TRY(auto api, find_daemon(args));
  json::array all;
  for (const auto& name : args.operands) {
    TRY(auto reply, api.call("GET", cat("/v1/images/", http::percent_encode(name))));
    TRY(auto image, parse_object(reply.body));
    all.push_back(std::move(image));
  }
  CHECK_OK(print(pretty(all.size() == 1 ? all[0] : json::value(all))));
  return kExitOk;
}

Result<int> prune_images(const Args& args) {
  TRY(auto api, find_daemon(args));
  json::object body{{"all", args.has("all")}};
  TRY(auto reply, api.call("POST", "/v1/images/prune", json::serialize(body), {}, Millis(600'000)));
  TRY(auto object, parse_object(reply.body));
  if (wants_json(args)) {
    CHECK_OK(print(pretty(object)));
    return kExitOk;
  }
  const auto* removed = object.if_contains("removed");
  std::string names;
  if (removed != nullptr && removed->is_array())
    for (const auto& name : removed->get_array())
      if (name.is_string()) names += cat(std::string_view(name.get_string()), "\n");
  CHECK_OK(print(names));
  note(cat("freed ", format_bytes(number_of(object, "freedBytes"))));
  return kExitOk;
}

}  // namespace

constinit const CommandSpec kImageInspect{
    .name = "image inspect",
    .also = {},
    .summary = "show everything known about an image",
    .usage = "[options] NAME...",
    .details = "Prints JSON: digest, layers with their sizes, environment, working directory, whether a sandbox runs on it.",
    .examples = "opensandbox image inspect debian:12",
    .options = kRemoveOptions,
    .operand = Operand::image,
    .min_operands = 1,
    .max_operands = 1000,
    .main = inspect_images,
};

constinit const CommandSpec kImagePrune{
    .name = "image prune",
    .also = {},
    .summary = "remove images that nothing needs",
    .usage = "[options]",
    .details =
        "Removes images that lost their name to a newer one, and layers that no image needs any more.\n"
        "An image that a sandbox runs on stays, with and without --all.",
    .examples = "opensandbox image prune\nopensandbox image prune --all",
    .options = kPruneOptions,
    .main = prune_images,
};

constinit const CommandSpec kImageList{
    .name = "image ls",
    .also = kListAlso,
    .summary = "list images",
    .usage = "[options]",
    .details = "host is always there: this machine's own programs, read-only.",
    .examples = "opensandbox image ls\nopensandbox image ls -o json",
    .options = kListOptions,
    .main = list_images,
};

constinit const CommandSpec kImageImport{
    .name = "image import",
    .also = {},
    .summary = "make an image from a tar archive or an OCI layout",
    .usage = "[options] PATH",
    .details =
        "PATH is a tar of a root file system (any compression), what `docker save` writes, or an OCI layout (folder or tar).\n"
        "The daemon reads it, so it must be a path on the daemon's machine. Nothing in it is executed.",
    .examples =
        "docker save python:3.12-slim -o py.tar && opensandbox image import py.tar\n"
        "debootstrap bookworm root && tar -C root -cf - . | zstd > d.tar.zst\n"
        "opensandbox image import --name debian:12 d.tar.zst",
    .options = kImportOptions,
    .operand = Operand::file,
    .min_operands = 1,
    .max_operands = 1,
    .main = import_image,
};

constinit const CommandSpec kImageRemove{
    .name = "image rm",
    .also = kRemoveAlso,
    .summary = "remove images",
    .usage = "[options] NAME...",
    .details = "An image that a sandbox uses stays.",
    .examples = "opensandbox image rm debian:12",
    .options = kRemoveOptions,
    .operand = Operand::image,
    .min_operands = 1,
    .max_operands = 1000,
    .main = remove_images,
};

}  // namespace osb::cli
