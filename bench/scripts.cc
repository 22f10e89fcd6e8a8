// The request lists of load.h.
#include <memory>
#include <utility>

#include "load.h"

namespace bench {
namespace {

// The value of "name":"..." without parsing the rest.
std::string_view text_after(std::string_view body, std::string_view name) {
  auto at = body.find(name);
  if (at == std::string_view::npos) return {};
  at += name.size();
  return body.substr(at, body.find('"', at) - at);
}

std::string with_body(const std::string& head, const std::string& body) {
  return head + "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

bool said_hello(int status, std::string_view body) {
  return status == 200 && body.find("hello") != std::string_view::npos && body.find("execution_complete") != std::string_view::npos;
}

Step create_step(const Server& server) {
  return {[text = with_body(request_head(server, "POST", server.prefix + "/sandboxes"), server.create_body())](
              std::string& out, const Memo&) { out += text; },
          [](int status, std::string_view body, Memo& memo) {
            memo.id = status == 202 ? text_after(body, "\"id\":\"") : "";
            return !memo.id.empty();
          }};
}

Step delete_step(const Server& server) {
  std::string lead = "DELETE " + server.prefix + "/sandboxes/", rest = request_head(server, "", "").substr(2) + "\r\n";
  return {[lead, rest](std::string& out, const Memo& memo) { out.append(lead).append(memo.id).append(" ").append(rest); },
          [](int status, std::string_view, Memo& memo) {
            memo.id.clear();
            return status == 204;
          }};
}

Step endpoint_step(const Server& server) {
  std::string lead = "GET " + server.prefix + "/sandboxes/",
              rest = std::string("/endpoints/") + kExecdPort + request_head(server, "", "").substr(1) + "\r\n";
  return {[lead, rest](std::string& out, const Memo& memo) { out.append(lead).append(memo.id).append(rest); },
          [](int status, std::string_view body, Memo& memo) {
            memo.token = text_after(body, "\"X-EXECD-ACCESS-TOKEN\":\"");
            return status == 200;
          }};
}

Step exec_step(const Server& server) {
  std::string body = kSameAsFloor;
  std::string rest = std::string("/proxy/") + kExecdPort + "/command HTTP/1.1\r\nHost: " + server.address.authority() +
                     "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  return {[rest, body](std::string& out, const Memo& memo) {
            out.append("POST /sandboxes/").append(memo.id).append(rest);
            if (!memo.token.empty()) out.append("X-EXECD-ACCESS-TOKEN: ").append(memo.token).append("\r\n");
            out.append("\r\n").append(body);
          },
          [](int status, std::string_view answer, Memo&) { return said_hello(status, answer); }};
}

}  // namespace

std::string request_head(const Server& server, const std::string& method, const std::string& path) {
  return method + " " + path + " HTTP/1.1\r\nHost: " + server.address.authority() + "\r\n" + server.key_header;
}

LoadSettings whole_lives(const Server& server, std::size_t clients, double seconds) {
  LoadSettings out{
      .address = server.address, .steps = {create_step(server)}, .repair = delete_step(server), .clients = clients, .seconds = seconds};
  if (server.address.socket.empty()) out.steps.push_back(endpoint_step(server));
  out.steps.push_back(exec_step(server));
  out.steps.push_back(delete_step(server));
  return out;
}

LoadSettings commands(const Server& server, const std::vector<Door>& doors, double seconds) {
  std::vector<std::string> requests;
  std::string body = kSameAsFloor;
  for (const auto& door : doors)
    requests.push_back(
        with_body("POST " + door.path + "/command HTTP/1.1\r\nHost: " + server.address.authority() + "\r\n" + door.headers, body));
  Step step{[requests](std::string& out, const Memo& memo) { out += requests[memo.client]; },
            [](int status, std::string_view answer, Memo&) { return said_hello(status, answer); }};
  return {.address = server.address, .steps = {step}, .clients = doors.size(), .seconds = seconds};
}

LoadSettings creates(const Server& server, std::size_t clients, std::size_t most, std::vector<std::string>& ids) {
  Step step = create_step(server);
  auto read = step.read;
  step.read = [read, &ids](int status, std::string_view body, Memo& memo) {
    if (!read(status, body, memo)) return false;
    ids.push_back(std::exchange(memo.id, ""));
    return true;
  };
  return {.address = server.address, .steps = {step}, .clients = clients, .seconds = 600, .most = most};
}

LoadSettings deletes(const Server& server, std::size_t clients, std::vector<std::string> ids) {
  Step step = delete_step(server);
  std::size_t count = ids.size();
  auto left = std::make_shared<std::vector<std::string>>(std::move(ids));
  step.write = [write = step.write, left](std::string& out, const Memo& memo) {
    Memo next = memo;
    if (!left->empty()) next.id = std::move(left->back()), left->pop_back();
    write(out, next);
  };
  return {.address = server.address, .steps = {step}, .clients = clients, .seconds = 600, .most = count};
}

}  // namespace bench
