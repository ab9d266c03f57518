#include "harness/model/model_catalogue.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "harness/faults/fault_catalogue.h"
#include "harness/model/programs/programs.h"
#include "harness/model/ring/ring_consumer.h"
#include "harness/model/ring/ring_program.h"

namespace perfring::model {
namespace {

Entry protocol_entry() {
  Entry entry{.name = "protocol", .what = "the ring protocol word by word, a ring of 4 words"};
  entry.has_forms = true;
  entry.size = Size{6, 6, {1}};
  entry.fault_size = entry.machine_size = Size{3, 3, {3, 2, 1}};
  entry.has_kernel_form = true;
  entry.length_min = 1;
  entry.length_max = 3;
  entry.length_unit = "words";
  for (const ProtocolFault& fault : protocol_faults()) {
    entry.faults.push_back(
        {fault.name, faults::what(fault.name), fault.in_a != nullptr, fault.in_b != nullptr});
  }
  entry.cases = [](const Size& size, Form form, const std::string& fault) {
    Protocol options;
    options.form = form == Form::B ? Protocol::Form::B : Protocol::Form::A;
    if (form == Form::Kernel) options.before_head_store = Protocol::Barrier::StoreStore;
    options.records = size.records;
    options.drains = size.drains;
    options.lengths = size.lengths;
    if (const auto* const changed = find_protocol_fault(fault)) changed->change(options);
    return std::vector<Case>{{"", protocol(options)}};
  };
  return entry;
}

// A record is N times 8 bytes long. The header and the field with the payload's size take 12 bytes.
constexpr unsigned kUnit = 8;
constexpr unsigned kSampleBytes = 12;

RingOptions ring_options(const Size& size, Form form) {
  RingOptions options;
  options.atomic_words = form == Form::A;
  options.records = size.records;
  options.drains = size.drains;
  options.payloads.clear();
  for (const unsigned length : size.lengths) {
    options.payloads.push_back(length * kUnit - kSampleBytes);
  }
  return options;
}

std::vector<ProgramFault> faults_shown_in(std::string_view program,
                                          std::span<const RingFault> all = ring_faults()) {
  std::vector<ProgramFault> shown;
  for (const RingFault& fault : all) {
    if (fault.shows_in != program) continue;
    shown.push_back({fault.name, faults::what(fault.name), fault.in_a != nullptr,
                     fault.in_b != nullptr, false, fault.in_any_order});
  }
  return shown;
}

// `on_machines`: the records' lengths under a machine's memory model, with which each fault of the
// entry is found.
Entry ring_entry(const std::string& name, std::string what,
                 std::vector<unsigned> on_machines = {2, 3}) {
  Entry entry{.name = name, .what = std::move(what)};
  entry.has_forms = true;
  entry.size = entry.fault_size = Size{6, 3, {2, 3}};
  entry.machine_size = Size{4, 2, std::move(on_machines)};
  entry.length_min = 2;
  entry.length_max = 7;
  entry.length_unit = "times 8 bytes";
  entry.faults = faults_shown_in(name);
  entry.cases = [name](const Size& size, Form form, const std::string& fault) {
    const RingOptions options = options_of(name, ring_options(size, form));
    const auto* const changed = find_ring_fault(ring_faults(), fault);
    return std::vector<Case>{
        {"", changed != nullptr ? changed->make(options) : ring_program<>(options)}};
  };
  return entry;
}

// Adds the faults of "ring" to the faults that only this entry shows.
Entry sharing(Entry entry) {
  for (ProgramFault& fault : faults_shown_in("ring")) {
    fault.shared = true;
    entry.faults.push_back(std::move(fault));
  }
  return entry;
}

Entry oversize_entry() {
  Entry entry =
      ring_entry("ring/oversize",
                 "the second record overwrites the whole ring (K10): a race in form B, but "
                 "nothing outside the ring is read, and each drain ends");
  entry.fails_in_b = true;
  return entry;
}

// `at_step`: nested() or nested_before_5_2().
Entry nested_entry(const char* name, const char* what, unsigned steps,
                   RingOptions (*at_step)(RingOptions, unsigned)) {
  Entry entry = ring_entry(name, what);
  entry.size = entry.fault_size = entry.machine_size = Size{3, 2, {2}};
  entry.cases = [=](const Size& size, Form form, const std::string& fault) {
    const auto* const changed = find_ring_fault(ring_faults(), fault);
    std::vector<Case> cases;
    for (unsigned step = 1; step <= steps; ++step) {
      const RingOptions options = at_step(ring_options(size, form), step);
      cases.push_back({"step " + std::to_string(step),
                       changed != nullptr ? changed->make(options) : ring_program<>(options)});
    }
    return cases;
  };
  return entry;
}

Entry cursor_entry() {
  Entry entry = ring_entry("ring/cursor",
                           "the same with a Cursor, which holds a record across a second look");
  entry.faults = faults_shown_in("ring", cursor_faults());
  for (ProgramFault& fault : entry.faults) fault.shared = true;
  entry.cases = [](const Size& size, Form form, const std::string& fault) {
    const RingOptions options = ring_options(size, form);
    const auto* const changed = find_ring_fault(cursor_faults(), fault);
    return std::vector<Case>{
        {"", changed != nullptr ? changed->make(options) : ring_program<Puller<>>(options)}};
  };
  return entry;
}

std::vector<Entry> make_catalogue() {
  std::vector<Entry> all;
  // With these lengths the kernel reports a LOST record, which the consumer delivers.
  const std::vector<unsigned> loses{4, 2};
  all.push_back(
      ring_entry("ring", "the shipped source and the simulated kernel, with for_each", loses));
  all.push_back(sharing(ring_entry("ring/fold", "the same with fold", loses)));
  all.push_back(sharing(ring_entry("ring/try_fold", "the same with try_fold", loses)));
  all.push_back(sharing(ring_entry("ring/break", "the callback breaks off at each event")));
  all.push_back(sharing(ring_entry("ring/throw", "the callback throws at each event")));
  all.push_back(sharing(ring_entry(
      "ring/straddle", "the second record's payload straddles the ring's end", {2, 3, 5})));
  all.push_back(
      sharing(ring_entry("ring/wrap_32", "a 32-bit kernel whose data_head crosses 2^32", loses)));
  all.push_back(cursor_entry());
  all.push_back(nested_entry(
      "ring/nested", "an interrupt outputs a record at each step of the second record's output",
      kStepsOfAnOutput, nested));
  all.push_back(nested_entry("ring/nested_before_5_2",
                             "the same with a kernel before 5.2, whose data_head goes back (K59)",
                             kStepsBefore52, nested_before_5_2));
  all.push_back(oversize_entry());
  all.push_back(protocol_entry());
  for (const KnownProgram& known : known_programs()) {
    Entry entry{.name = known.name, .what = known.what};
    entry.fails_in_a = entry.fails_in_b = !known.violated.empty();
    entry.cases = [make = known.make](const Size&, Form, const std::string&) {
      return std::vector<Case>{{"", make()}};
    };
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace

// The faults in kOnMachinesOnly need load buffering or control dependencies to show while the
// ring's words are atomic, and RC11 has neither. LKMM reads an acquire fence as smp_rmb(), which
// orders no store.
bool ProgramFault::fails_on(MemoryModel machine) const {
  static constexpr std::array<std::string_view, 4> kOnMachinesOnly = {
      "no_full_fence", "store_store_for_full", "commits_by_record_unfenced",
      "no_control_dependency"};
  if (machine == MemoryModel::Lkmm && name == "acquire_for_full") return true;
  return fails_in_a || std::ranges::find(kOnMachinesOnly, name) != kOnMachinesOnly.end();
}

bool ProgramFault::can_run_on(MemoryModel machine) const {
  return machine != MemoryModel::Lkmm || name != "release_for_full";
}

const ProgramFault* Entry::find_fault(const std::string& fault) const {
  const auto found = std::ranges::find(faults, fault, &ProgramFault::name);
  return found == faults.end() ? nullptr : &*found;
}

const std::vector<Entry>& catalogue() {
  static const std::vector<Entry> all = make_catalogue();
  return all;
}

const Entry* find_entry(const std::string& name) {
  const auto found = std::ranges::find(catalogue(), name, &Entry::name);
  return found == catalogue().end() ? nullptr : &*found;
}

}  // namespace perfring::model
