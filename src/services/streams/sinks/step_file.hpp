// SPDX-License-Identifier: BSD-3-Clause
// A netCDF file that has a stream's steps as records: docs/streams-formats.md. On a disk, or in memory.
#pragma once

#include "services/streams/sinks/layout.hpp"
#include "services/streams/sinks/netcdf.hpp"

#include <map>
#include <string>
#include <vector>

namespace nessie::streams::sinks {

/// Of a file on a disk: nothing behind its header has to move when it grows by no more.
inline constexpr std::size_t kHeaderReserve = std::size_t{64} << 10;

/// Moves. Errors of all: as NetcdfFile's.
class StepFile {
 public:
  /// Defines what the layout has, in an empty file, with so much room in the header for attributes that come later, or
  /// grow.
  static Result<StepFile> define(NetcdfFile file, Layout layout, std::size_t reserve_bytes = kHeaderReserve);
  /// One that is there. kBadMessage: it is no file of steps.
  static Result<StepFile> open(NetcdfFile file);

  const Layout &layout() const { return layout_; }
  /// Of the steps that are in it whole.
  const std::vector<std::uint64_t> &numbers() const { return numbers_; }
  /// Whether write() has room for all of the step.
  bool has_room(const Step &step) const;

  /// Puts the step behind those that are there, where has_room(); it is one of them when mark() has returned. Can be
  /// called again after an error, also of what Step::get() says.
  Status write(Step &step);
  /// Says that the step which was written is there whole.
  Status mark(std::uint64_t number);
  Status sync() { return file_.sync(); }
  Status close() { return file_.close(); }

  /// The variables of one of its steps, with their shapes in it.
  Result<std::vector<Variable>> variables(std::size_t record);
  /// Of a variable in one of its steps.
  Status get(std::size_t record, const Variable &variable, const Box &box, std::span<std::byte> destination);

 private:
  explicit StepFile(NetcdfFile file) : file_(std::move(file)) {}
  struct Numbers {
    int variable = -1, shape = -1;
  };
  Status define_all();
  Status define_one(const FileVariable &variable, int steps, const std::map<std::string, int> &dimensions);
  Status put_attributes(const std::vector<Attribute> &attributes);
  Status update_attributes(const Step &step);
  Status read_layout();
  Status read_variable(int number, const std::vector<NetcdfVariable> &all,
                       const std::vector<NetcdfDimension> &dimensions, std::vector<std::string> &shapes);
  Status read_numbers(std::int64_t records);
  Status write_variable(std::size_t index, Step &step);
  Status fill(std::size_t index);
  Status copy(std::size_t index, const Variable &now, Step &step);
  Status put_shape(std::size_t index, const Extents &shape);
  Box in_file(std::size_t index, const Box &box, std::size_t record) const;
  Status put_text(int variable, const char *name, std::string_view text);

  NetcdfFile file_;
  Layout layout_;
  std::vector<Numbers> ids_;  ///< netCDF's, of the layout's variables
  int step_id_ = -1;
  std::vector<std::uint64_t> numbers_;
  bool has_constants_ = false;  ///< they were written since it was opened
  std::size_t reserve_ = 0;     ///< of the header, that is left for attributes
};

/// One of a file's steps. Not to outlive it.
class FileStep : public Step {
 public:
  static Result<FileStep> open(StepFile &file, std::size_t record);
  std::uint64_t number() const override { return file_->numbers()[record_]; }
  const std::vector<Variable> &variables() const override { return variables_; }
  const std::vector<Attribute> &attributes() const override { return file_->layout().attributes; }
  bool is_new(const Variable &) const override { return true; }
  Status get(const Variable &variable, const Box &box, std::span<std::byte> destination) override {
    return file_->get(record_, variable, box, destination);
  }

 private:
  FileStep(StepFile &file, std::size_t record, std::vector<Variable> variables)
      : file_(&file), record_(record), variables_(std::move(variables)) {}
  StepFile *file_;
  std::size_t record_;
  std::vector<Variable> variables_;
};

}  // namespace nessie::streams::sinks
