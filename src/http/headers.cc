#include <algorithm>

#include "base/text.h"
#include "http/http.h"

namespace osb::http {

std::string_view Headers::get(std::string_view name) const {
  for (const auto& field : fields_)
    if (iequals(field.name, name)) return field.value;
  return {};
}

bool Headers::has(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(), [name](const Header& f) { return iequals(f.name, name); });
}

std::size_t Headers::count(std::string_view name) const {
  return static_cast<std::size_t>(std::count_if(fields_.begin(), fields_.end(), [name](const Header& f) { return iequals(f.name, name); }));
}

void Headers::set(std::string_view name, std::string value) {
  remove(name);
  add(std::string(name), std::move(value));
}

void Headers::remove(std::string_view name) {
  std::erase_if(fields_, [name](const Header& f) { return iequals(f.name, name); });
}

Response Response::json(int status, std::string body) {
  Response response{status, {}, std::move(body)};
  response.headers.add("Content-Type", "application/json");
  return response;
}

Response Response::text(int status, std::string body) {
  Response response{status, {}, std::move(body)};
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  return response;
}

Task<void> Responder::closed() {
  // Ends early only by cancellation.
  for (;;) co_await sleep_for(std::chrono::hours(1));
}

}  // namespace osb::http
