// From our values to the wire: the one switch from Errc to HTTP, and the JSON of sandboxes.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/http.h"
#include "image/image.h"
#include "lifecycle/service.h"
#include "model/sandbox.h"
#include "model/snapshot.h"

namespace osb::api {

// Who reads an error. Failures of ours (internal, unavailable, timeout) name host paths and internals: a remote client
// reads a fixed sentence instead, the caller logs the details; the local door belongs to the operator and shows them.
enum class Reader { remote, local };

int status_of(Errc kind);
// {"code","message","field"?,"hint"?}; never empty.
std::string error_json(const Error& error, Reader reader);
http::Response render(const Error& error, Reader reader);
// For failures of HTTP itself, before any room was asked (no such route, wrong method, wrong content type).
http::Response problem(int status, std::string_view code, std::string_view message);

struct Page {
  std::size_t number = 1;
  std::size_t size = 20;
};

// The answer to create: without the image, with the effective entrypoint.
std::string created_json(const Sandbox& sandbox);
std::string sandbox_json(const Sandbox& sandbox);
std::string listing_json(const lifecycle::Listing& listing, Page page);
std::string snapshot_json(const Snapshot& snapshot);
std::string listing_json(const lifecycle::SnapshotListing& listing, Page page);
std::string image_json(const image::Image& image);
// With everything that is known of it.
std::string image_details_json(const image::Image& image, bool in_use);

}  // namespace osb::api
