// SPDX-License-Identifier: BSD-3-Clause
// Design notes. Three kinds of findings: obstacles, each of which keeps all of the program's files native; what goes
// native beside what is staged; and what is good to know. Without an obstacle, the verdict depends on whether the
// program calls PnetCDF: it shows that in the names that it, or a library that is no I/O library itself, looks for.
#include "judge.hpp"

#include <base/printable.hpp>

#include <fmt/format.h>
#include <gnu/lib-names.h>

#include <algorithm>
#include <filesystem>

namespace nessie::cli {

namespace {

constexpr std::string_view kOurSoname = "libnessie_pnetcdf.so";
constexpr const char *kLinkDynamically =
    "link it dynamically, with -lnessie_pnetcdf before -lpnetcdf: docs/running.md, \"Before a run\"";
constexpr const char *kLinkFirst =
    "link it to the shared libpnetcdf, with -lnessie_pnetcdf before it (pkg-config --libs nessie-pnetcdf): "
    "docs/running.md, \"Before a run\"";
constexpr const char *kBuildAgain = "build the program, or Nessie, with the other's libraries";

std::string file_name(const std::string &path) { return std::filesystem::path(path).filename().string(); }

bool has_any_prefix(const Names &names, const std::vector<std::string_view> &prefixes) {
  return std::ranges::any_of(prefixes, [&](auto prefix) { return has_prefix(names, prefix); });
}

// --- the marks by which the preloaded library goes ---------------------------------------------------------------------

bool looks_functions_up(const ElfFile &elf) { return elf.wants("dlsym") || elf.wants("dlvsym"); }

bool is_pnetcdf(const ElfFile &elf) {
  if (!elf.defines("ncmpi_create")) return false;
  if (elf.defines("ncmpii_error_mpi2nc") || elf.wants("MPI_File_set_view")) return true;
  return elf.defines("ncmpi_inq_libvers") && !looks_functions_up(elf);
}

bool is_mpi(const ElfFile &elf) { return elf.defines("PMPI_Comm_rank"); }

bool is_stub_of_mpi(const ElfFile &elf) {
  return elf.defines("MPI_Comm_rank") && !elf.wants("PMPI_Comm_rank") && !looks_functions_up(elf);
}

/// For itself, where nobody else finds it. PnetCDF asks MPI what datatypes are made of, which hardly anybody else does.
bool has_pnetcdf_inside(const ElfFile &elf) {
  if (elf.defines("ncmpi_create")) return false;
  if (elf.hidden.contains("ncmpi_create") && !elf.wants("ncmpi_create")) return true;
  return elf.wants("MPI_Type_get_contents") && elf.wants("MPI_File_set_view") && !elf.wants("ncmpi_create") &&
         !elf.wants("ncmpi_open");
}

// --- I/O libraries ----------------------------------------------------------------------------------------------------

constexpr std::string_view kPnetcdf = "PnetCDF", kNetcdf = "netCDF";

struct IoLibrary {
  std::string_view name;
  std::vector<std::string_view> functions;  ///< how those begin that a program calls, in C, Fortran or C++
};

const std::vector<IoLibrary> &io_libraries() {
  static const std::vector<IoLibrary> all = {
      {kPnetcdf, {"ncmpi_", "nfmpi_", "__pnetcdf_MOD_", "_ZN7PnetCDF", "_ZNK7PnetCDF"}},
      {kNetcdf, {"nc_create", "nc_open", "nc__create", "nc__open", "nf_create", "nf_open", "nf__", "__netcdf_MOD_"}},
      {"HDF5", {"H5Fcreate", "H5Fopen", "h5fcreate", "h5fopen", "__h5f_MOD_", "__hdf5_MOD_"}},
      {"ADIOS2", {"adios2_", "_ZN6adios2", "_ZNK6adios2"}},
      {"MPI-IO", {"MPI_File_open", "mpi_file_open", "PMPI_File_open"}}};
  return all;
}

bool is_part_of_io(const Object &object) {
  const auto name = file_name(object.path);
  const auto &elf = object.elf;
  return is_pnetcdf(elf) || is_mpi(elf) || elf.defines("nc_create") || elf.defines("H5Fcreate") ||
         has_any_prefix(
             {name}, {"mca_", "libmpi", "libnetcdf", "libhdf5", "libadios2", "libnessie_pnetcdf.", "libcommsplitter"});
}

std::string family_of(const std::string &soname) {
  if (soname.starts_with("libmpi.so.40")) return "Open MPI";
  if (soname.starts_with("libmpi.so.12") || soname.starts_with("libmpich")) return "MPICH or one of its kin";
  return "an MPI";
}

// --- judging ----------------------------------------------------------------------------------------------------------

class Judge {
 public:
  explicit Judge(const Subject &subject) : subject_(subject), program_(subject.program().elf) {}
  Judgement judge() &&;

 private:
  void obstruct(std::string what, std::string advice = {}) {
    obstacles_.push_back({std::move(what), std::move(advice)});
  }
  void leave_native(std::string what, std::string advice = {}) {
    natives_.push_back({std::move(what), std::move(advice)});
  }
  void note(std::string what, std::string advice = {}) { notes_.push_back({std::move(what), std::move(advice)}); }

  bool is_program(const Object &object) const { return &object == &subject_.objects.front(); }
  /// Of PnetCDF, MPI or another I/O library: what it calls is not the program's choice.
  bool is_io(const Object &object) const { return !is_program(object) && is_part_of_io(object); }
  /// An obstacle for files of PnetCDF, or good to know where there are none.
  void say_foreign(std::string what, std::string advice);
  /// By the user: a tool, mostly, whose calls are not the program's.
  bool is_preloaded(const Object &object) const;
  bool is_linked_to_us() const;
  std::string name_of(const Object &object) const;

  void look_at_format();
  void look_at_rights();
  void look_at_start();
  void look_at_preload();
  void look_inside();
  void look_at_mpi();
  void look_at_pnetcdf();
  const Object *native_pnetcdf() const;
  const Object *caller_of(const IoLibrary &library) const;
  void look_at_calls();
  void look_at_netcdf();
  void look_at_plugins();
  void look_at_scripts();
  void look_at_trial();
  void decide();
  void decide_without_calls();
  bool starts_others() const;
  bool opens_libraries(const Object &object) const;
  bool may_open_later() const;

  const Subject &subject_;
  const ElfFile &program_;
  bool uses_pnetcdf_ = false;
  std::vector<Finding> obstacles_, natives_, notes_;
  std::vector<std::string> native_names_;  ///< of the libraries whose files go native
  Judgement judgement_;
};

std::string Judge::name_of(const Object &object) const {
  return is_program(object) ? "the program" : printable(object.path);
}

void Judge::say_foreign(std::string what, std::string advice) {
  if (uses_pnetcdf_) return obstruct(std::move(what), std::move(advice));
  note(what + ": files of PnetCDF would be native", std::move(advice));
}

bool Judge::is_preloaded(const Object &object) const {
  return std::ranges::any_of(subject_.preloaded, [&](const std::string &name) {
    return name == object.path || name == file_name(object.path);
  });
}

bool Judge::is_linked_to_us() const {
  return std::ranges::any_of(
      subject_.objects, [](const Object &object) { return std::ranges::count(object.elf.needed, kOurSoname) > 0; });
}

// --- whether anything can be preloaded ---

void Judge::look_at_format() {
  if (!program_.of_this_machine) return obstruct("it is a program of another kind of machine", "build it for this one");
  if (program_.interpreter.empty())
    return obstruct("it is linked statically: nothing can be preloaded into it", kLinkDynamically);
  if (!program_.interpreter.ends_with(LD_SO))
    obstruct(fmt::format("its dynamic linker, {}, is not the C library's ({}): nothing of Nessie's can be preloaded",
                         printable(program_.interpreter), LD_SO),
             "build it for the C library of this machine");
}

void Judge::look_at_rights() {
  if (subject_.rights.empty()) return;
  if (!subject_.rights_count)
    return note(fmt::format(
        "it has {}, which gives you no more rights than you have: others it would not be staged for", subject_.rights));
  auto what = fmt::format("it has {}: the dynamic linker ignores LD_PRELOAD for programs with rights of their own",
                          subject_.rights);
  if (is_linked_to_us())
    return leave_native(what + "; Nessie's library, to which it is linked, comes if its folder is a trusted one");
  obstruct(std::move(what), "take the rights from a copy of it (chmod ug-s, setcap -r), and run that");
}

void Judge::look_at_start() {
  for (const auto &name : subject_.missing)
    obstruct(fmt::format("it does not start: {} is not found", printable(name)),
             "load the module that has it, or set LD_LIBRARY_PATH");
  if (subject_.mismatch) note(*subject_.mismatch);
  if (!subject_.why_unlisted.empty())
    note(fmt::format("which libraries it loads is not known: {}", subject_.why_unlisted),
         "nessie check --run 5 finds out");
}

void Judge::look_at_preload() {
  if (!subject_.preload_replaced.empty())
    obstruct(
        fmt::format("LD_PRELOAD is replaced by what starts the program ('{}')", printable(subject_.preload_replaced)),
        "add ':' and the path of libnessie_pnetcdf.so to it");
  for (const auto &object : subject_.objects)
    if (is_pnetcdf(object.elf) && is_preloaded(object))
      obstruct(fmt::format("PnetCDF itself, {}, is in LD_PRELOAD, before Nessie's library", printable(object.path)),
               "take it out of LD_PRELOAD");
  if (is_linked_to_us()) note("it is linked to Nessie's library");
}

void Judge::look_inside() {
  if (has_pnetcdf_inside(program_) || program_.defines("ncmpi_create"))
    obstruct("it has PnetCDF inside, linked statically, and calls that", kLinkFirst);
  for (const auto &object : subject_.objects)
    if (!is_program(object) && !is_io(object) && has_pnetcdf_inside(object.elf))
      leave_native(
          fmt::format("{} has a PnetCDF inside: what it writes through that is native", printable(object.path)),
          "link that library to the shared libpnetcdf");
}

// --- which MPI, which PnetCDF ---

void Judge::look_at_mpi() {
  const Object *any = nullptr, *other = nullptr, *stub = nullptr;
  for (const auto &object : subject_.objects) {
    const bool whole = is_mpi(object.elf), partly = !whole && is_stub_of_mpi(object.elf);
    if (is_program(object) && (whole || partly))
      return say_foreign("the program brings its own MPI, or one that it was linked to statically", kBuildAgain);
    if (whole && (any != nullptr || object.elf.soname != NESSIE_MPI_SONAME)) other = &object;
    if (whole && any == nullptr) any = &object;
    if (partly) stub = &object;
  }
  if (any != nullptr) judgement_.mpi = any->path;
  const auto *foreign = other != nullptr || any != nullptr ? other : stub;
  if (foreign != nullptr)
    return say_foreign(
        fmt::format("the program uses {}, and Nessie was built for {}", printable(foreign->path), NESSIE_MPI_SONAME),
        fmt::format("it is {}: {}", family_of(foreign->elf.soname), kBuildAgain));
  if (any != nullptr)
    note(fmt::format("it uses {}, {}, as Nessie does", family_of(any->elf.soname), printable(any->path)));
}

/// The one that a call reaches first behind us, or else the first that is there.
const Object *Judge::native_pnetcdf() const {
  const auto next = std::ranges::find_if(subject_.objects, [&](const Object &object) {
    return !is_program(object) && !object.late && object.elf.soname != kOurSoname && object.elf.defines("ncmpi_create");
  });
  if (next != subject_.objects.end() && is_pnetcdf(next->elf)) return &*next;
  const auto first = std::ranges::find_if(
      subject_.objects, [&](const Object &object) { return !is_program(object) && is_pnetcdf(object.elf); });
  return first == subject_.objects.end() ? nullptr : &*first;
}

bool is_our_version(const std::string &version) {
  const std::string ours = NESSIE_PNETCDF_VERSION;
  return version.empty() || version == ours ||
         version.starts_with(ours + ' ');  // one that does not show is asked later
}

void Judge::look_at_pnetcdf() {
  const auto *native = native_pnetcdf();
  if (native == nullptr) return;
  judgement_.pnetcdf = native->path;
  if (!is_our_version(native->pnetcdf_version) || native->elf.soname != NESSIE_PNETCDF_SONAME)
    return say_foreign(
        fmt::format("the program uses {} (PnetCDF {}), and Nessie was built for {} ({})", printable(native->path),
                    native->pnetcdf_version.empty() ? "?" : printable(native->pnetcdf_version), NESSIE_PNETCDF_SONAME,
                    NESSIE_PNETCDF_VERSION),
        kBuildAgain);
  note(fmt::format("it has PnetCDF, {}, as Nessie has", printable(native->path)));
  for (const auto &object : subject_.objects)
    if (&object != native && !is_program(object) && is_pnetcdf(object.elf))
      leave_native(
          fmt::format("the program has another PnetCDF as well, {}, whose files are native", printable(object.path)));
}

// --- what it calls ---

/// The first of the program's files that calls such a function; null: none does.
const Object *Judge::caller_of(const IoLibrary &library) const {
  const auto calls = [&](const Object &object) {
    return !object.deep && !is_io(object) && !is_preloaded(object) &&
           has_any_prefix(object.elf.wanted, library.functions);
  };
  const auto found = std::ranges::find_if(subject_.objects, calls);
  return found == subject_.objects.end() ? nullptr : &*found;
}

void Judge::look_at_calls() {
  for (const auto &library : io_libraries()) {
    const auto *caller = caller_of(library);
    if (caller == nullptr) continue;
    judgement_.calls.emplace_back(library.name);
    if (judgement_.calls.back() == kPnetcdf) {
      uses_pnetcdf_ = true;
      note(fmt::format("{} calls PnetCDF", name_of(*caller)));
    } else if (judgement_.calls.back() == kNetcdf) {
      look_at_netcdf();
    } else {
      native_names_.emplace_back(library.name);
      leave_native(fmt::format("{} calls {}: those files are native", name_of(*caller), library.name));
    }
  }
}

/// Through PnetCDF go files of the classic formats that are opened in parallel, where netCDF is built so.
void Judge::look_at_netcdf() {
  const auto netcdf =
      std::ranges::find_if(subject_.objects, [](const Object &object) { return object.elf.defines("nc_create"); });
  const bool has_pnetcdf = netcdf != subject_.objects.end() && netcdf->elf.wants("ncmpi_create");
  const bool in_parallel = std::ranges::any_of(subject_.objects, [](const Object &object) {
    return has_any_prefix(object.elf.wanted, {"nc_create_par", "nc_open_par", "nf_create_par", "nf_open_par"});
  });
  native_names_.emplace_back(has_pnetcdf && in_parallel ? "netCDF-4" : "netCDF");
  if (has_pnetcdf && in_parallel) uses_pnetcdf_ = true;
  if (has_pnetcdf && in_parallel)
    return leave_native(
        "it calls netCDF, which is built with PnetCDF: files of the classic formats that are made or "
        "opened in parallel go through that and are staged, all others, netCDF-4 too, are native",
        "make files with nc_create_par and NC_64BIT_DATA, not NC_NETCDF4");
  leave_native(has_pnetcdf ? "it calls netCDF, and opens no files in parallel: they are native"
                           : "it calls netCDF, which is built without PnetCDF: its files are native",
               has_pnetcdf
                   ? "make files with nc_create_par and NC_64BIT_DATA"
                   : "link it to a netCDF that is built with --enable-pnetcdf, and make files with nc_create_par");
}

void Judge::look_at_plugins() {
  for (const auto &object : subject_.objects) {
    if (object.deep && !is_io(object) && has_any_prefix(object.elf.wanted, io_libraries()[0].functions))
      leave_native(fmt::format("{} was opened past all preloaded libraries (RTLD_DEEPBIND): its files are native",
                               printable(object.path)),
                   "open it without RTLD_DEEPBIND");
    if (object.late && !object.deep && is_pnetcdf(object.elf) && !uses_pnetcdf_) {
      uses_pnetcdf_ = true;
      judgement_.calls.insert(judgement_.calls.begin(), std::string(kPnetcdf));
      note(fmt::format("it opened {}, and looks functions up in it", printable(object.path)));
    }
  }
}

// --- what only a run tells ---

bool is_shell(const std::string &path) {
  static const Names shells = {"sh", "bash", "dash", "ksh", "mksh", "zsh", "csh", "tcsh", "fish", "busybox"};
  return shells.contains(file_name(path));
}

/// "python", "python3.11". It may be a script itself, which chooses one (pyenv).
bool is_python(const Subject &subject) {
  constexpr std::string_view kName = "python";
  const auto has_name = [&](const std::string &path) {
    const auto name = file_name(path);
    return name.starts_with(kName) && name.find_first_not_of("0123456789.", kName.size()) == std::string::npos;
  };
  return has_name(subject.path) || std::ranges::any_of(subject.scripts, has_name);
}

void Judge::look_at_scripts() {
  for (const auto &script : subject_.scripts)
    note(fmt::format("{} is a script, for {}", printable(script), printable(subject_.path)));
  if (is_python(subject_))
    note(
        "Python loads PnetCDF late, with a module. Nessie's library waits for that: functions that ctypes or cffi look "
        "up are staged, and so are modules that are linked to the shared libpnetcdf; a module that brings its own "
        "(a wheel may) is native",
        subject_.trial ? "" : "nessie check --run 5 tells what the script loads");
  else if (is_shell(subject_.path))
    note("a shell hands Nessie's library on to what it starts", "check the programs that it starts");
}

void Judge::look_at_trial() {
  if (!subject_.trial) return;
  const auto &trial = *subject_.trial;
  const auto opened = std::ranges::count(subject_.objects, true, &Object::late);
  note(fmt::format("a trial run {} after {:.1f} s, and opened {} more {}",
                   trial.ended_itself ? trial.ending : "was ended", trial.seconds, opened,
                   opened == 1 ? "library" : "libraries"));
  if (is_shell(subject_.path) && !trial.became.empty() && file_name(trial.became) != file_name(subject_.path))
    note(fmt::format("it became {}", printable(trial.became)), "check that program");
}

/// The program, or a library that it is linked to itself and that may be its better half, as Python's and Java's are.
/// Others, of MPI and below, do so for their own purposes.
bool Judge::opens_libraries(const Object &object) const {
  const bool is_near = is_program(object) || std::ranges::count(program_.needed, object.elf.soname) > 0;
  return is_near && !is_io(object) && (object.elf.wants("dlopen") || object.elf.wants("dlmopen"));
}

bool Judge::may_open_later() const {
  if (subject_.trial && subject_.trial->ended_itself) return false;
  return !subject_.why_unlisted.empty() ||
         std::ranges::any_of(subject_.objects, [this](const Object &object) { return opens_libraries(object); });
}

// --- the verdict ---

/// Of a shell, and of a wrapper as env or time.
bool Judge::starts_others() const {
  return is_shell(subject_.path) || (!subject_.argument.empty() && !is_python(subject_) && natives_.empty());
}

void Judge::decide_without_calls() {
  if (starts_others()) {
    judgement_.verdict = Verdict::kPartly;
    judgement_.why = "what it starts, if that is a program that would be staged";
    if (!subject_.argument.empty())
      note(fmt::format("it may start {}", printable(subject_.argument)), "check that program");
    return;
  }
  judgement_.verdict = may_open_later() ? Verdict::kPartly : Verdict::kNot;
  if (!may_open_later()) {
    judgement_.why = natives_.empty() ? "it does not call PnetCDF" : natives_.front().what;
    return;
  }
  judgement_.why = "what it does with PnetCDF, if it opens that later; its files do not show it";
  note(fmt::format("it opens libraries as it runs (dlopen){}",
                   subject_.trial ? "; in the trial run, none of PnetCDF" : ""),
       subject_.trial ? "a longer trial may tell more" : "nessie check --run 5 tells which");
}

void Judge::decide() {
  if (!obstacles_.empty()) {
    judgement_.verdict = Verdict::kNot;
    judgement_.why = obstacles_.front().what;
  } else if (!uses_pnetcdf_) {
    decide_without_calls();
  } else if (!subject_.why_unlisted.empty()) {
    judgement_.verdict = Verdict::kPartly;
    judgement_.why = "files of PnetCDF, if its libraries, which are not known, are those that Nessie was built for";
  } else if (!natives_.empty()) {
    judgement_.verdict = Verdict::kPartly;
    judgement_.why = native_names_.empty()
                         ? natives_.front().what
                         : fmt::format("files of PnetCDF; those of {} are native", fmt::join(native_names_, ", "));
  }
}

Judgement Judge::judge() && {
  look_at_format();
  if (!program_.interpreter.empty()) look_at_rights();
  look_at_start();
  look_at_preload();
  look_inside();
  look_at_calls();
  look_at_plugins();
  look_at_mpi();
  look_at_pnetcdf();
  look_at_scripts();
  look_at_trial();
  decide();
  for (auto *kind : {&obstacles_, &natives_, &notes_})
    judgement_.findings.insert(judgement_.findings.end(), kind->begin(), kind->end());
  return std::move(judgement_);
}

}  // namespace

std::string Judgement::sentence() const {
  if (verdict == Verdict::kStaged) return "would be staged";
  return fmt::format("would {}: {}", verdict == Verdict::kPartly ? "be staged in part" : "not be staged", why);
}

Judgement judge(const Subject &subject) { return Judge(subject).judge(); }

}  // namespace nessie::cli
