#include "client.h"

#include <unistd.h>

#include <stdexcept>

#include "interrupt.h"
#include "process.h"

namespace bench {
namespace {

void check_hello(const Reply& reply) {
  if (reply.status != 200 || reply.body.find("hello") == std::string::npos || reply.body.find("execution_complete") == std::string::npos)
    throw std::runtime_error("command failed: " + std::to_string(reply.status) + " " + reply.body.substr(0, 200));
}

// The members of "headers" in an endpoint answer, as header lines.
std::string header_lines(const std::string& body) {
  auto at = body.find("\"headers\"");
  if (at == std::string::npos) return {};
  std::string map = body.substr(at + 9, body.find('}', at) - at - 9), out;
  for (std::size_t begin = map.find('"'); begin != std::string::npos;) {
    auto end = map.find('"', begin + 1);
    auto value = map.find('"', end + 1), stop = map.find('"', value + 1);
    if (stop == std::string::npos) break;
    out += map.substr(begin + 1, end - begin - 1) + ": " + map.substr(value + 1, stop - value - 1) + "\r\n";
    begin = map.find('"', stop + 1);
  }
  return out;
}

}  // namespace

std::string Server::create_body(const std::string& limits) const {
  return R"({"image":{"uri":")" + image + R"("},"timeout":600,"entrypoint":["tail","-f","/dev/null"],"resourceLimits":{)" + limits + "}}";
}

Reply Client::call(const std::string& method, const std::string& path, const std::string& body) {
  return http_.call(method, server_.prefix + path, server_.key_header, body);
}

std::string Client::create(const std::string& limits) {
  Reply reply = call("POST", "/sandboxes", server_.create_body(limits));
  if (reply.status != 202) throw std::runtime_error("create failed: " + std::to_string(reply.status) + " " + reply.body.substr(0, 300));
  return json_text(reply.body, "id");
}

Door Client::door(const std::string& id) {
  Reply reply = call("GET", "/sandboxes/" + id + "/endpoints/" + kExecdPort);
  if (reply.status != 200) throw std::runtime_error("no endpoint: " + std::to_string(reply.status) + " " + reply.body.substr(0, 200));
  return {"/sandboxes/" + id + "/proxy/" + kExecdPort, header_lines(reply.body)};
}

void Client::remove(const std::string& id) {
  if (int status = call("DELETE", "/sandboxes/" + id).status; status != 204)
    throw std::runtime_error("delete failed: " + std::to_string(status));
}

double Client::exec(const Door& door, const char* body) {
  auto at = Clock::now();
  Reply reply = http_.call("POST", door.path + "/command", door.headers, body);
  double took = micros_since(at);
  check_hello(reply);
  return took;
}

Life Client::whole_life() {
  Life life;
  auto at = Clock::now();
  std::string id = create();
  life.create = micros_since(at);
  at = Clock::now();
  Door way = door(id);
  life.endpoint = micros_since(at);
  life.exec = exec(way, kSameAsFloor);
  at = Clock::now();
  remove(id);
  life.remove = micros_since(at);
  return life;
}

std::size_t Client::remove_all() {
  std::size_t removed = 0;
  for (int empty = 0; empty < 2;) {
    Reply reply = call("GET", "/sandboxes?pageSize=200");
    std::size_t before = removed;
    for (auto at = reply.body.find("\"id\":\""); at != std::string::npos; at = reply.body.find("\"id\":\"", at + 1)) {
      at += 6;
      call("DELETE", "/sandboxes/" + reply.body.substr(at, reply.body.find('"', at) - at));
      ++removed;
    }
    if (removed != before) continue;
    ++empty;  // looked at again: a create of another connection may just be ending
    ::usleep(10'000);
  }
  return removed;
}

double foreign_life(Client& client) {
  auto at = Clock::now();
  std::string id = client.create();
  try {
    Reply found = client.call("GET", "/sandboxes/" + id + "/endpoints/" + kExecdPort);
    std::string endpoint = json_text(found.body, "endpoint"), headers = header_lines(found.body);
    auto slash = endpoint.find('/');
    std::string path = slash == std::string::npos ? "" : endpoint.substr(slash);
    Http execd(Address::parse(endpoint.substr(0, slash)));
    auto ready = [&] {
      try {
        return execd.call("GET", path + "/ping", headers, "").status == 200;
      } catch (const std::runtime_error&) {
        return false;
      }
    };
    while (!ready()) {
      if (seconds_since(at) > 60) throw std::runtime_error("its sandbox was not ready within 60 s");
      pause_ms(1);
    }
    check_hello(execd.call("POST", path + "/command", headers, kPlainEcho));
  } catch (...) {
    client.call("DELETE", "/sandboxes/" + id);
    throw;
  }
  client.remove(id);
  return micros_since(at);
}

}  // namespace bench
