#include "model/ledger_record.h"

#include "base/id.h"
#include "base/text.h"

namespace osb {

std::string render_ledger_line(const LedgerRecord& record) {
  std::string line = cat(record.id, " range ", record.range, " deadline ", record.deadline_boot_nanos, " boot ", record.boot_id,
                         record.spare ? " spare 1" : "");
  // Years of cpu time would not fit; nothing but a number that people see depends on it.
  auto cpu = cat(" cpu ", record.cpu_nanos_before);
  if (line.size() + cpu.size() < kLedgerLine) line += cpu;
  line.resize(kLedgerLine - 1, ' ');
  return line + '\n';
}

std::optional<LedgerRecord> parse_ledger_line(std::string_view line) {
  auto words = split(line.substr(0, line.find('\n')), ' ');
  if (!is_id_text(words[0])) return std::nullopt;
  LedgerRecord record;
  record.id = words[0];
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    if (words[i] == "range") record.range = parse_int<std::uint32_t>(words[i + 1]).value_or(0);
    if (words[i] == "deadline") record.deadline_boot_nanos = parse_int<std::uint64_t>(words[i + 1]).value_or(0);
    if (words[i] == "cpu") record.cpu_nanos_before = parse_int<std::uint64_t>(words[i + 1]).value_or(0);
    if (words[i] == "boot") record.boot_id = words[i + 1];
    if (words[i] == "spare") record.spare = words[i + 1] == "1";
  }
  return record;
}

std::vector<LedgerRecord> parse_ledger(std::string_view file) {
  std::vector<LedgerRecord> records;
  for (; file.size() >= kLedgerLine; file.remove_prefix(kLedgerLine))
    if (auto record = parse_ledger_line(file.substr(0, kLedgerLine))) records.push_back(*std::move(record));
  return records;
}

}  // namespace osb
