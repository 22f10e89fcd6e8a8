// What can be told about one sandbox, as text for people. Pure: facts in, text out; everything of the sandbox is sanitised.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lifecycle/service.h"

namespace osb::api::v1 {

enum class DiagnosisKind : std::uint8_t { logs, events, inspect, summary };
enum class DiagnosisScope : std::uint8_t { all, container, lifecycle, runtime, network, process };

std::string_view name_of(DiagnosisKind kind);
std::string_view name_of(DiagnosisScope scope);
std::optional<DiagnosisScope> parse_scope(std::string_view text);

struct Facts {
  Sandbox sandbox;
  lifecycle::EventLog events;
  std::optional<lifecycle::Measure> measure;  // none: it has no processes, or the runtime did not say
  std::optional<std::string> output;          // of its first program, raw; none: not to be had
  std::optional<std::string> processes;       // execd's JSON, raw
  bool output_complete = true;                // false: execd kept only the end of it
};

struct Diagnosis {
  std::string text;
  bool truncated = false;
  std::vector<std::string> warnings;
};

struct DiagnosisBounds {
  std::size_t lines = 10'000;  // of output
  std::size_t events = 500;
  std::size_t bytes = 256 * 1024;  // of everything
};

Diagnosis diagnose(const Facts& facts, DiagnosisKind kind, DiagnosisScope scope, DiagnosisBounds bounds);

}  // namespace osb::api::v1
