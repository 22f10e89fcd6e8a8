#include "api/render.h"

#include <algorithm>

#include "api/json_text.h"
#include "base/text.h"
#include "lifecycle/admission.h"
#include "model/json.h"

namespace osb::api {
namespace {

std::string_view default_code(Errc kind) {
  switch (kind) {
    case Errc::invalid_argument: return "SANDBOX::INVALID_PARAMETER";
    case Errc::malformed: return "SANDBOX::INVALID_PARAMETER";
    case Errc::not_found: return "DOCKER::SANDBOX_NOT_FOUND";
    case Errc::conflict: return "SANDBOX::CONFLICT";
    case Errc::unauthenticated: return "INVALID_API_KEY";
    case Errc::permission_denied: return "GENERAL::PERMISSION_DENIED";
    case Errc::too_large: return "GENERAL::TOO_LARGE";
    case Errc::exhausted: return "SANDBOX::LIMIT_REACHED";
    case Errc::unavailable: return "GENERAL::UNAVAILABLE";
    case Errc::unsupported: return "SANDBOX::API_NOT_SUPPORTED";
    case Errc::timeout: return "GENERAL::TIMEOUT";
    case Errc::internal: return "GENERAL::UNKNOWN_ERROR";
  }
  return "GENERAL::UNKNOWN_ERROR";
}

// What a remote client reads of a failure that is ours; empty = the error's own words are about the request.
std::string_view public_sentence(Errc kind) {
  switch (kind) {
    case Errc::unavailable: return "A part of the server that is needed for this is not available right now.";
    case Errc::timeout: return "The server did not finish this in time.";
    case Errc::internal: return "The server failed to do this; its log tells why.";
    case Errc::invalid_argument:
    case Errc::malformed:
    case Errc::not_found:
    case Errc::conflict:
    case Errc::unauthenticated:
    case Errc::permission_denied:
    case Errc::too_large:
    case Errc::exhausted:
    case Errc::unsupported: return {};
  }
  return {};
}

void append_status(std::string& out, const Status& status) {
  ObjectText text;
  text.add("state", name_of(status.state)).add_unless_empty("reason", status.reason).add_unless_empty("message", status.message);
  text.add("lastTransitionAt", format_rfc3339(status.changed_at));
  out += std::move(text).done();
}

void add_platform(ObjectText& text, const SandboxSpec& spec) {
  if (!spec.platform) return;
  ObjectText platform;
  platform.add("os", spec.platform->first).add("arch", spec.platform->second);
  text.raw("platform", std::move(platform).done());
}

void add_common(ObjectText& text, const Sandbox& sandbox) {
  append_status(text.key("status"), sandbox.status);
  append_json_map(text.key("metadata"), sandbox.spec.metadata);
  append_json_list(text.key("entrypoint"), sandbox.spec.entrypoint);
  if (sandbox.expires_at) text.add("expiresAt", format_rfc3339(*sandbox.expires_at));
  text.add("createdAt", format_rfc3339(sandbox.created_at));
  add_platform(text, sandbox.spec);
}

std::string pagination_json(std::size_t total, Page page) {
  auto pages = (total + page.size - 1) / page.size;
  ObjectText text;
  text.add("page", page.number).add("pageSize", page.size).add("totalItems", total);
  text.add("totalPages", pages).add("hasNextPage", page.number < pages);
  return std::move(text).done();
}

}  // namespace

int status_of(Errc kind) {
  switch (kind) {
    case Errc::invalid_argument: return 400;
    case Errc::malformed: return 422;
    case Errc::not_found: return 404;
    case Errc::conflict: return 409;
    case Errc::unauthenticated: return 401;
    case Errc::permission_denied: return 403;
    case Errc::too_large: return 413;
    case Errc::exhausted: return 429;
    case Errc::unavailable: return 503;
    case Errc::unsupported: return 501;
    case Errc::timeout: return 504;
    case Errc::internal: return 500;
  }
  return 500;
}

std::string error_json(const Error& error, Reader reader) {
  // What admission control says is for the client, also where the kind is that of a failure of ours.
  bool secret = reader == Reader::remote && lifecycle::retry_after_seconds(error.code()) == 0;
  auto sentence = secret ? public_sentence(error.kind()) : std::string_view();
  std::string_view message = sentence.empty() ? std::string_view(error.what()) : sentence;
  ObjectText text;
  text.add("code", error.code().empty() ? default_code(error.kind()) : std::string_view(error.code()));
  text.add("message", message.empty() ? std::string_view("The request failed.") : message);
  // A refused command names the rule where others name the field at fault.
  bool by_rule = error.code().starts_with("COMMAND::") && error.kind() == Errc::permission_denied;
  text.add_unless_empty(by_rule ? "rule" : "field", error.field()).add_unless_empty("hint", error.hint());
  return std::move(text).done();
}

http::Response render(const Error& error, Reader reader) {
  int status = status_of(error.kind());
  auto response = http::Response::json(status, error_json(error, reader));
  if (status == 429 || status == 503) response.headers.add("Retry-After", cat(std::max(1, lifecycle::retry_after_seconds(error.code()))));
  return response;
}

http::Response problem(int status, std::string_view code, std::string_view message) {
  ObjectText text;
  text.add("code", code).add("message", message);
  return http::Response::json(status, std::move(text).done());
}

std::string created_json(const Sandbox& sandbox) {
  ObjectText text;
  text.add("id", sandbox.id.text());
  add_common(text, sandbox);
  return std::move(text).done();
}

std::string sandbox_json(const Sandbox& sandbox) {
  ObjectText text;
  text.add("id", sandbox.id.text());
  if (!sandbox.spec.image.empty()) {
    ObjectText image;
    image.add("uri", sandbox.spec.image);
    text.raw("image", std::move(image).done());
  }
  text.add_unless_empty("snapshotId", sandbox.spec.snapshot_id);
  add_common(text, sandbox);
  return std::move(text).done();
}

std::string snapshot_json(const Snapshot& snapshot) {
  ObjectText status;
  status.add("state", name_of(snapshot.state)).add("reason", snapshot.reason).add("message", snapshot.message);
  status.add("lastTransitionAt", format_rfc3339(snapshot.changed_at));
  ObjectText text;
  text.add("id", snapshot.id.text()).add("sandboxId", snapshot.sandbox.text()).add_unless_empty("name", snapshot.name);
  text.raw("status", std::move(status).done()).add("createdAt", format_rfc3339(snapshot.created_at));
  if (snapshot.state == SnapshotState::ready) text.add("sizeBytes", snapshot.size_bytes).add("entries", snapshot.entries);
  return std::move(text).done();
}

std::string listing_json(const lifecycle::SnapshotListing& listing, Page page) {
  ObjectText text;
  auto& items = text.key("items");
  items += '[';
  for (const Snapshot& snapshot : listing.items) {
    if (items.back() != '[') items += ',';
    items += snapshot_json(snapshot);
  }
  items += ']';
  text.raw("pagination", pagination_json(listing.total, page));
  return std::move(text).done();
}

std::string listing_json(const lifecycle::Listing& listing, Page page) {
  ObjectText text;
  auto& items = text.key("items");
  items += '[';
  for (const Sandbox& sandbox : listing.items) {
    if (items.back() != '[') items += ',';
    items += sandbox_json(sandbox);
  }
  items += ']';
  text.raw("pagination", pagination_json(listing.total, page));
  return std::move(text).done();
}

std::string image_json(const image::Image& image) {
  ObjectText text;
  text.add("name", image.name).add("digest", image.digest).add("sizeBytes", image.size_bytes);
  text.add("layers", image.layers.size()).add_unless_empty("createdAt", image.created_at);
  return std::move(text).done();
}

std::string image_details_json(const image::Image& image, bool in_use) {
  ObjectText text;
  text.add("name", image.name).add("digest", image.digest).add("sizeBytes", image.size_bytes);
  auto& layers = text.key("layers");
  layers += '[';
  for (std::size_t i = 0; i < image.layers.size(); ++i) {
    ObjectText layer;
    layer.add("diffId", cat("sha256:", image.layers[i]));
    if (i < image.layer_bytes.size()) layer.add("sizeBytes", image.layer_bytes[i]);
    layers += cat(i == 0 ? "" : ",", std::move(layer).done());
  }
  layers += ']';
  auto& env = text.key("env");
  env += '[';
  for (const auto& [name, value] : image.env) {
    if (env.back() != '[') env += ',';
    append_json_string(env, cat(name, "=", value));
  }
  env += ']';
  text.add_unless_empty("workingDir", image.working_dir).add("hostView", image.host_view).add("inUse", in_use);
  text.add_unless_empty("createdAt", image.created_at);
  return std::move(text).done();
}

}  // namespace osb::api
