// SPDX-License-Identifier: BSD-3-Clause
// Files that unmodified programs write through a run's staging servers, as streams. Their data stay where they are, in
// the staging servers' pages or in the file: a step is where to read it from, and nothing is held for anybody.
//
// What is a step: of a file with record variables each record, as soon as it is complete; fixed variables are constants
// of the step in which they are complete. Of a file without, all of it each time that it is synced, or closed. Of files
// that are numbered each file, when it is closed.
#pragma once

#include <base/clock.hpp>
#include <base/config.hpp>
#include <services/staging/client/watcher.hpp>
#include <services/streams/geometry.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace streams {

using Variables = std::shared_ptr<const std::vector<VariableArgs>>;

/// Where a step's data are.
struct FileSource {
  static constexpr std::int64_t kWholeFile = -1;
  staging::FileToken file = 0;
  staging::Mark mark;
  std::int64_t record = kWholeFile;  ///< also of a step that has fixed variables only
  SourceKind kind = SourceKind::kOfRecord;
  std::shared_ptr<const staging::ClassicHeader> header;  ///< as it stood
};

struct FileStep {
  std::string stream;
  FileSource source;
  Variables variables;
  std::vector<AttributeArgs> attributes;  ///< those that may be others than before
};

/// What steps become of the marks of files. Waits for nothing.
class FileSteps {
 public:
  /// `pattern`: which files, as fnmatch(3): their paths relative to `folder`, if they are below it, or what follows the
  /// last '/' if the pattern has none. If it has one '*', and digits stand there, the files are numbered, and one
  /// stream under the pattern's name.
  FileSteps(std::string pattern, std::string folder) : pattern_(std::move(pattern)), folder_(std::move(folder)) {}

  struct Name {
    std::string stream;
    bool is_numbered = false;
  };
  /// Nothing: it is no stream.
  std::optional<Name> name_of(const std::string &path) const;
  /// Whether its name stood for another file with records before, or for one without and this has records: with it
  /// another stream begins, and what is known of that one is forgotten. `header`: null, if the file has no marks.
  bool begins_anew(const staging::WatchedFile &file, const staging::ClassicHeader *header);
  /// The steps that its marks make; none of a file in whose place there is another one. `header`: as it stands.
  std::vector<FileStep> take(const staging::WatchedFile &file, const staging::ClassicHeader &header);

 private:
  struct Followed {
    staging::FileToken file = 0;
    staging::FileIdentity identity;
    std::int64_t created_ns = 0;  ///< as of staging::WatchedFile
    bool is_open = false, has_records = false;
    std::uint32_t headers = 0;
    std::int64_t records = 0;  ///< that are steps
    std::set<int> constants;   ///< fixed variables that have been complete
    Variables of_record;
  };
  static bool is_former(const staging::WatchedFile &file, const Followed &followed);
  static void follow(const staging::WatchedFile &file, Followed &followed);
  void take_mark(const staging::WatchedFile &file, const staging::Mark &mark, const staging::ClassicHeader &header,
                 const std::string &stream, std::vector<FileStep> &steps);
  void take_records(const staging::WatchedFile &file, const staging::Mark &mark, const staging::ClassicHeader &header,
                    Followed &followed, FileStep step, std::vector<FileStep> &steps);

  const std::string pattern_, folder_;
  std::map<std::string, Followed> followed_;              ///< by stream
  std::map<staging::FileToken, staging::Mark> numbered_;  ///< the last of each numbered file that is open
};

struct FilesOptions {
  std::string pattern, folder;
  nessie::Config staging;  ///< of a client of the staging servers
};

/// Follows the files of a run, on a thread of its own.
class Files {
 public:
  /// Called on that thread.
  struct Listener {
    std::function<void(FileStep)> on_step;
    /// Another file has the name now.
    std::function<void(const std::string &stream)> on_anew;
    /// `why` is empty: its program has closed it, and ended. Otherwise its steps end before its time.
    std::function<void(const std::string &stream, const std::string &why)> on_end;
    /// The run's files are complete, or cannot be followed any more; the last call.
    std::function<void()> on_over;
  };
  /// Errors as staging::Watcher::connect().
  static Result<std::unique_ptr<Files>> start(FilesOptions options, Listener listener, nessie::Deadline deadline);
  ~Files();
  Files(const Files &) = delete;

  /// Gets a box of a step's variable, in C order. Waits: not for a thread that drives. Errors as
  /// staging::Watcher::read().
  Status read(const FileSource &source, const std::string &variable, const Box &box, std::span<std::byte> data,
              nessie::Deadline deadline);

 private:
  Files(FilesOptions options, Listener listener, std::unique_ptr<staging::Watcher> watcher);
  void follow();
  void take(const staging::News &news);
  void take(const staging::WatchedFile &file);
  void take_steps(const staging::WatchedFile &file, const FileSteps::Name &name);
  void end_all(const std::string &why);

  const FilesOptions options_;
  const Listener listener_;
  FileSteps steps_;
  struct Open {
    std::string stream;
    staging::FileToken file = 0;  ///< of which its last step was
  };
  std::map<std::string, Open> open_;  ///< streams that have not ended, by the paths of their files
  std::unique_ptr<staging::Watcher> watcher_;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace streams
