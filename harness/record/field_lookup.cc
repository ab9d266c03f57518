#include "harness/record/field_lookup.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

namespace perfring::record {
namespace {

std::vector<std::byte> bytes_of(const Json* hex) {
  std::vector<std::byte> bytes;
  if (hex == nullptr || !hex->is_string()) return bytes;
  const auto& digits = hex->get_ref<const std::string&>();
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// "ids" and "id" name the same array.
std::string singular(std::string name) {
  if (name.ends_with('s')) name.pop_back();
  return name;
}

void collect(const std::string& name, const Json& json, std::vector<Element>& into) {
  if (json.is_object()) {
    for (const auto& [field, value] : json.items()) collect(field, value, into);
  }
  if (!json.is_array()) return;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (!json[i].is_object()) into.push_back({name, i, "", &json[i]});
    if (!json[i].is_object()) continue;
    for (const auto& [field, value] : json[i].items()) into.push_back({name, i, field, &value});
  }
}

template <class T>
std::optional<Json> json_of(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  return Json(*value);
}

}  // namespace

FieldLookup::FieldLookup(const Vector& vector, const Json& record)
    : vector_{vector}, record_{record}, raw_{bytes_of(child(child(&record, "raw"), "data"))} {
  collect("", record, elements_);
}

std::optional<Json> FieldLookup::find(const std::string& name, const Json& known) const {
  if (const Json* const direct = find_direct(name)) return copy_of(*direct);
  if (auto inside = find_inside(name)) return inside;
  if (const Json* const trailing = child(child(&record_, "sample_id"), name))
    return copy_of(*trailing);
  if (const Json* const element = find_element(name)) return copy_of(*element);
  // In a group, "value" means the leader's value.
  const Json* const leader = name == "value" ? find_element("value0") : nullptr;
  if (leader != nullptr) return copy_of(*leader);
  if (auto flag = find_in_misc(name)) return flag;
  if (auto in_raw = find_in_raw(name, known.is_string() && !number_of(known))) return in_raw;
  return find_register(name.starts_with("first_argument_") ? name.substr(15) : name);
}
std::optional<std::uint64_t> FieldLookup::number(const std::string& name) const {
  const auto value = find(name, {});
  return value ? number_of(*value) : std::nullopt;
}
std::optional<std::uint64_t> FieldLookup::probed() const {
  return raw_at<std::uint64_t>(8);
}

const Json* FieldLookup::find_direct(const std::string& name) const {
  if (const Json* const own = child(&record_, name)) return own;
  if (name == "bpf_type") return child(&record_, "type");
  if (name == "prog_id") return child(&record_, "id");
  if (name.starts_with("sid_")) return child(child(&record_, "sample_id"), name.substr(4));
  return child(child(&record_, "header"), name);
}

std::optional<Json> FieldLookup::find_inside(const std::string& name) const {
  for (const auto& [field, value] : record_.items()) {
    if (!value.is_object() || field == "header" || field == "sample_id") continue;
    if (const Json* const inner = child(&value, name)) return copy_of(*inner);
    if (!name.starts_with(field + "_")) continue;
    if (const Json* const inner = child(&value, name.substr(field.size() + 1)))
      return copy_of(*inner);
  }
  for (const char* const count : {"branches", "nr_branches", "branch_nr"}) {
    const Json* const nr = name == count ? child(child(&record_, "branch_stack"), "nr") : nullptr;
    if (nr != nullptr) return copy_of(*nr);
  }
  if (name == "dev_ino_net_uts_ipc_pid_user_mnt_cgroup") return links();
  return std::nullopt;
}

// Formats the namespaces as "4:4026531833,4:4026532178" (dev:inode).
std::optional<Json> FieldLookup::links() const {
  const Json* const namespaces = child(&record_, "namespaces");
  if (namespaces == nullptr) return std::nullopt;
  std::string text;
  for (const Json& link : *namespaces) {
    if (!text.empty()) text += ',';
    text +=
        fmt::format("{}:{}", link["dev"].get<std::uint64_t>(), link["inode"].get<std::uint64_t>());
  }
  return Json(text);
}

const Json* FieldLookup::find_element(const std::string& name) const {
  static const std::regex kElement{"([a-z_]+?)_?([0-9]{1,5})(_[a-z_]+)?"};
  std::smatch parts;
  if (!matches(name, parts, kElement)) return nullptr;
  const std::size_t index = std::stoul(parts[2]);
  const std::string array = parts[1] == "branch" || parts[1] == "entry" ? "lbr" : parts[1].str();
  for (const Element& element : elements_) {
    if (element.index != index) continue;
    const bool is_array = singular(array) == singular(element.array);
    if (parts[3].matched) {
      if (is_array && "_" + element.field == parts[3]) return element.value;
    } else if (element.field.empty() ? is_array : singular(parts[1]) == singular(element.field)) {
      return element.value;
    }
  }
  return nullptr;
}

std::optional<Json> FieldLookup::find_in_misc(const std::string& name) const {
  const Json* const header = child(&record_, "header");
  const Json* const bits = child(header, "misc");
  if (bits == nullptr) return std::nullopt;
  const auto misc = bits->get<unsigned>();
  const unsigned mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;
  constexpr std::array kModes{"unknown",    "kernel",       "user",
                              "hypervisor", "guest_kernel", "guest_user"};
  if (name == "cpumode" && mode < kModes.size()) return Json(kModes[mode]);
  if (name == "user_mode") return Json(int{mode == PERF_RECORD_MISC_USER});
  if (name == "kernel_mode") return Json(int{mode == PERF_RECORD_MISC_KERNEL});
  for (const char* const bit : {"exec", "comm_exec", "mmap_data", "out", "switch_out"}) {
    if (name == bit) return Json(misc >> 13 & 1);
  }
  for (const char* const bit :
       {"exact_ip", "preempt", "preempted", "switch_out_preempt", "misc_build_id_bit"}) {
    if (name == bit) return Json(misc >> 14 & 1);
  }
  return std::nullopt;
}

std::optional<Json> FieldLookup::raw_string(std::size_t offset, std::size_t size) const {
  if (offset > raw_.size()) return std::nullopt;
  const char* const begin = reinterpret_cast<const char*>(raw_.data()) + offset;
  const std::size_t room = std::min(size, raw_.size() - offset);
  return Json(std::string{begin, ::strnlen(begin, room)});
}

// A tracepoint's raw data:
//
//   0: u16 common_type   2: u8 flags   3: u8 preempt count   4: s32 common_pid   8: its own fields
std::optional<Json> FieldLookup::find_in_raw(const std::string& name, bool is_text) const {
  static const std::regex kPlaced{"raw_.*_at_([0-9]{1,5})"};
  std::smatch parts;
  if (matches(name, parts, kPlaced)) {
    const std::size_t offset = std::stoul(parts[1]);
    return is_text ? raw_string(offset, raw_.size()) : json_of(raw_at<std::int32_t>(offset));
  }
  if (name == "raw_common_type") return json_of(raw_at<std::uint16_t>(0));
  if (name == "raw_common_pid") return json_of(raw_at<std::int32_t>(4));
  if (name == "raw_syscall_nr") return json_of(raw_at<std::int32_t>(8));
  const auto location = raw_at<std::uint32_t>(8);  // __data_loc: size << 16 | offset
  if (name == "raw_pid") return json_of(raw_at<std::int32_t>(12));
  if (name.starts_with("data_loc_") && location) {
    return raw_string(*location & 0xffff, *location >> 16);
  }
  return std::nullopt;
}
// Finds a register by its name in enum perf_event_x86_regs: in regs_user if it is there, otherwise
// in regs_intr.
std::optional<Json> FieldLookup::find_register(const std::string& name) const {
  constexpr std::array<std::string_view, 24> kNames{
      "ax", "bx", "cx", "dx", "si", "di", "bp",  "sp",  "ip",  "flags", "cs",  "ss",
      "ds", "es", "fs", "gs", "r8", "r9", "r10", "r11", "r12", "r13",   "r14", "r15"};
  const bool is_long = name.size() == 3 && (name[0] == 'r' || name[0] == 'e');
  const auto place = std::ranges::find(kNames, is_long && name[1] > '9' ? name.substr(1) : name);
  if (place == kNames.end()) return std::nullopt;
  const auto bit = static_cast<unsigned>(place - kNames.begin());
  for (const char* const of : {"regs_user", "regs_intr"}) {
    const Json* const regs = child(child(&record_, of), "regs");
    const std::uint64_t mask = of == std::string_view{"regs_user"} ? vector_.attr.sample_regs_user
                                                                   : vector_.attr.sample_regs_intr;
    if (regs == nullptr || regs->empty() || (mask >> bit & 1) == 0) continue;
    const std::uint64_t below = mask & ((std::uint64_t{1} << bit) - 1);
    const auto index = static_cast<std::size_t>(std::popcount(below));
    if (index < regs->size()) return copy_of((*regs)[index]);
  }
  return std::nullopt;
}

}  // namespace perfring::record
