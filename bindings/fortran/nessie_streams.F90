! SPDX-License-Identifier: BSD-3-Clause
! Streams: a running program's arrays in other programs, step by step; and the shared space. What nessie/streams.hpp is in
! C++, which says what each does, promises and refuses; README.md beside this file has an example.
!
! Functions return a nessie_status. Times are in milliseconds; a timeout_ms of -1: no limit, 0: without waiting, absent:
! 30 s. Streams and spaces are handles: a copy is the same thing, and each is closed once, by the program; one of them is
! used by one thread at a time.
!
! Shapes, starts and counts are in Fortran's order, the first dimension the fastest, and positions count from 1. Elsewhere
! the dimensions are reversed, and nothing is transposed: what is T(nx, ny) here, is T[ny][nx] in C. They are integers of 4
! or 8 bytes. Arrays have any rank; sections of them need not be contiguous. `start` absent: from the first element on;
! `count` absent: the shape of the array, whose length in characters comes first if it is of texts; dimensions that
! `start` has beyond those have one element. Numbers without sign are those with one, of the same size.
module nessie_streams
  use, intrinsic :: iso_c_binding
  use nessie
  use nssi_c, only: status_of
  use nessie_streams_c
  implicit none
  private
  public :: nessie_status, nessie_error, nessie_ok, nessie_timed_out, nessie_peer_lost, nessie_refused, &
    nessie_invalid_argument, nessie_out_of_range, nessie_not_found, nessie_exists, nessie_unsupported, &
    nessie_no_memory, nessie_busy, nessie_bad_message, nessie_io, nessie_cancelled, nessie_no_result, nessie_internal, &
    nessie_too_large, nessie_interrupted, nessie_unavailable, nessie_scope_operation, nessie_scope_peer, &
    nessie_scope_service, nessie_scope_process
  public :: stream_list, stream_allocate, stream_free

  ! Of elements; nessie/streams.h, enum nessie_stream_type.
  integer(c_int32_t), parameter, public :: stream_int8 = 1, stream_char = 2, stream_int16 = 3, stream_int32 = 4, &
    stream_float = 5, stream_double = 6, stream_uint8 = 7, stream_uint16 = 8, stream_uint32 = 9, stream_int64 = 10, &
    stream_uint64 = 11
  ! What a step outlives once end_step() has returned; absent: the setting streams.durability.
  integer(c_int32_t), parameter, public :: stream_memory = 1, stream_logged = 2
  ! Which steps a reader sees.
  integer(c_int32_t), parameter, public :: stream_every = 0, stream_view = 1
  ! Where it begins.
  integer(c_int32_t), parameter, public :: stream_from_oldest = 0, stream_from_latest = 1, stream_from_next = 2, &
    stream_from_number = 3
  ! How begin_step() ended.
  integer(c_int32_t), parameter, public :: stream_step_ok = 0, stream_not_yet = 1, stream_end = 2
  ! Of a stream that stream_list() has found.
  integer(c_int32_t), parameter, public :: stream_open = 0, stream_ended = 1, stream_interrupted = 2

  type, public :: stream_variable_t
    character(len=:), allocatable :: name
    integer(c_int32_t) :: type = 0
    integer(c_int64_t), allocatable :: shape(:)
    logical :: is_constant = .false.
    logical :: has_fill = .false.
  end type

  type, public :: stream_attribute_t
    character(len=:), allocatable :: variable      ! '': of the stream
    character(len=:), allocatable :: name
    integer(c_int32_t) :: type = 0
    integer(c_int64_t) :: count = 0                ! elements; of text, characters
  end type

  ! What a box has; `elements` that count: neither NaN nor fill values.
  type, bind(C), public :: stream_figures_t
    real(c_double) :: minimum = 0, maximum = 0, mean = 0
    integer(c_int64_t) :: elements = 0
  end type

  ! A group of readers, as the servers see it.
  type, public :: stream_reader_info_t
    character(len=:), allocatable :: subscription  ! '': it has no name
    integer(c_int32_t) :: reading = stream_every
    integer(c_int32_t) :: size = 0, connected = 0  ! ranks
    integer(c_int64_t) :: ended = 0                ! steps from the first of the stream on that it needs no more
    integer(c_int64_t) :: lag = 0                  ! complete steps that it has not ended
    integer(c_int64_t) :: missed = 0
  end type

  ! A stream, as the servers see it.
  type, public :: stream_info_t
    character(len=:), allocatable :: name
    integer(c_int32_t) :: status = stream_open     ! stream_interrupted: a writer died
    character(len=:), allocatable :: why           ! of an interrupted one, or one whose file went native
    logical :: is_file = .false.                   ! a staged file of an unmodified program
    integer(c_int32_t) :: writers = 0, connected = 0, durability = stream_memory
    integer(c_int64_t) :: steps = 0, oldest = 0    ! that were complete; the first that the servers have
    integer(c_int64_t) :: memory_bytes = 0, log_bytes = 0
    type(stream_variable_t), allocatable :: variables(:)
    type(stream_attribute_t), allocatable :: attributes(:)
    type(stream_reader_info_t), allocatable :: readers(:)
  end type

  ! One rank that writes a stream, or reads it.
  type, public :: stream_t
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: open_writer => stream_open_writer ! (name, [rank, size, at, durability, append, await_readers, timeout_ms])
    procedure :: open_reader => stream_open_reader ! (name, [rank, size, at, reading, from, first, subscription, group, ...])
    procedure :: is_open => stream_is_open
    procedure :: close => stream_close             ! ([timeout_ms]); after an error it is open still
    procedure :: unsubscribe => stream_unsubscribe ! ([timeout_ms]): close(), and let go of the subscription
    procedure :: drop => stream_drop               ! as if the process had been killed
    procedure :: begin_step => stream_begin_step   ! (state, [timeout_ms])
    procedure :: end_step => stream_end_step       ! ([timeout_ms])
    procedure :: step => stream_step
    procedure :: missed => stream_missed
    procedure :: find => stream_find               ! (name, variable)
    procedure :: variables => stream_variables     ! (list)
    procedure :: attributes => stream_attributes   ! (list)
    procedure :: figures => stream_figures         ! (variable, figures, [start, count, timeout_ms])
    ! (name, type, shape, [fill, constant]); shape [integer ::]: a scalar
    generic :: define => define_plain, define_int8, define_int16, define_int32, define_int64, define_float, &
      define_double, define_char
    ! (variable, array, [start, count])
    generic :: put => put_int8, put_int16, put_int32, put_int64, put_float, put_double, put_char
    generic :: put_lent => lend_int8, lend_int16, lend_int32, lend_int64, lend_float, lend_double, lend_char
    ! (variable, pointer, [start, count])
    generic :: span => span_int8, span_int16, span_int32, span_int64, span_float, span_double, span_char
    ! (variable, array, [start, count, timeout_ms])
    generic :: get => get_int8, get_int16, get_int32, get_int64, get_float, get_double, get_char
    ! (name, value, [variable])
    generic :: set_attribute => set_int8, set_int16, set_int32, set_int64, set_float, set_double, set_char
    generic :: get_attribute => fetch_int8, fetch_int16, fetch_int32, fetch_int64, fetch_float, fetch_double, fetch_text
    procedure, private :: define_plain
    procedure, private :: define_int8, put_int8, lend_int8, span_int8, get_int8, set_int8, fetch_int8
    procedure, private :: define_int16, put_int16, lend_int16, span_int16, get_int16, set_int16, fetch_int16
    procedure, private :: define_int32, put_int32, lend_int32, span_int32, get_int32, set_int32, fetch_int32
    procedure, private :: define_int64, put_int64, lend_int64, span_int64, get_int64, set_int64, fetch_int64
    procedure, private :: define_float, put_float, lend_float, span_float, get_float, set_float, fetch_float
    procedure, private :: define_double, put_double, lend_double, span_double, get_double, set_double, fetch_double
    procedure, private :: define_char, put_char, lend_char, span_char, get_char, set_char, fetch_text
  end type

  ! The shared space: arrays under names, with versions, each element of a version written once, by whomever.
  type, public :: space_t
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: open => space_open                ! ([at, timeout_ms])
    procedure :: close => space_close
    procedure :: newest => space_newest            ! (name, version, [timeout_ms])
    ! (name, version, array, [start, count, timeout_ms])
    generic :: put => leave_int8, leave_int16, leave_int32, leave_int64, leave_float, leave_double, leave_char
    generic :: get => take_int8, take_int16, take_int32, take_int64, take_float, take_double, take_char
    procedure, private :: leave_int8, leave_int16, leave_int32, leave_int64, leave_float, leave_double, leave_char
    procedure, private :: take_int8, take_int16, take_int32, take_int64, take_float, take_double, take_char
  end type

  type :: infos_t
    type(stream_info_t), allocatable :: list(:)
  end type

contains

  ! --- what both sides of the border need -----------------------------------------------------------------------------

  recursive function or_default(timeout_ms) result(time_ms)
    integer(c_int32_t), intent(in), optional :: timeout_ms
    integer(c_int32_t) :: time_ms
    time_ms = 30000
    if (present(timeout_ms)) time_ms = timeout_ms
  end function

  recursive function c_text(text) result(made)
    character(len=*), intent(in), optional :: text
    character(kind=c_char, len=:), allocatable :: made
    made = c_null_char
    if (present(text)) made = trim(text) // c_null_char
  end function

  recursive subroutine see_variable(from, to)
    type(c_variable), intent(in) :: from
    type(stream_variable_t), intent(inout) :: to
    integer(c_int64_t), pointer, contiguous :: extents(:)
    to%name = nessie_text(from%name)
    to%type = from%type
    to%is_constant = from%is_constant /= 0
    to%has_fill = c_associated(from%fill)
    if (allocated(to%shape)) deallocate (to%shape)
    allocate (to%shape(from%ndims))
    if (from%ndims == 0) return
    call c_f_pointer(from%shape, extents, [from%ndims])
    to%shape(:) = extents(from%ndims:1:-1)
  end subroutine

  recursive subroutine see_variables(begin, count, to)
    type(c_ptr), intent(in) :: begin
    integer(c_int64_t), intent(in) :: count
    type(stream_variable_t), allocatable, intent(inout) :: to(:)
    type(c_variable), pointer, contiguous :: from(:)
    integer(c_int64_t) :: i
    if (allocated(to)) deallocate (to)
    allocate (to(count))
    if (count == 0) return
    call c_f_pointer(begin, from, [count])
    do i = 1, count
      call see_variable(from(i), to(i))
    end do
  end subroutine

  recursive subroutine see_attributes(begin, count, to)
    type(c_ptr), intent(in) :: begin
    integer(c_int64_t), intent(in) :: count
    type(stream_attribute_t), allocatable, intent(inout) :: to(:)
    type(c_attribute), pointer, contiguous :: from(:)
    integer(c_int64_t) :: i
    if (allocated(to)) deallocate (to)
    allocate (to(count))
    if (count == 0) return
    call c_f_pointer(begin, from, [count])
    do i = 1, count
      to(i)%variable = nessie_text(from(i)%variable)
      to(i)%name = nessie_text(from(i)%name)
      to(i)%type = from(i)%type
      to(i)%count = from(i)%count
    end do
  end subroutine

  ! --- opening, and closing -------------------------------------------------------------------------------------------

  recursive function stream_open_writer(self, name, rank, size, at, durability, append, await_readers, timeout_ms) &
    result(status)
    class(stream_t), intent(inout) :: self
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in), optional :: rank, size             ! 0 of 1
    character(len=*), intent(in), optional :: at                       ! where the servers are
    integer(c_int32_t), intent(in), optional :: durability
    logical, intent(in), optional :: append                            ! go on after the last complete step
    integer(c_int32_t), intent(in), optional :: await_readers, timeout_ms
    type(nessie_status) :: status
    type(c_options) :: options
    if (present(durability)) options%durability = durability
    if (present(append)) options%append = merge(1, 0, append)
    if (present(await_readers)) options%await_readers = await_readers
    status = open_with(self, name, 1_c_int32_t, rank, size, at, options, timeout_ms)
  end function

  recursive function stream_open_reader(self, name, rank, size, at, reading, from, first, subscription, group, &
    timeout_ms) result(status)
    class(stream_t), intent(inout) :: self
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in), optional :: rank, size             ! 0 of 1
    character(len=*), intent(in), optional :: at                       ! where the servers are
    integer(c_int32_t), intent(in), optional :: reading, from
    integer(c_int64_t), intent(in), optional :: first                  ! with stream_from_number
    character(len=*), intent(in), optional :: subscription             ! names the group
    integer(c_int64_t), intent(in), optional :: group                  ! tells groups of several ranks without a name apart
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    type(c_options) :: options
    character(kind=c_char, len=:), allocatable, target :: named
    named = c_text(subscription)
    options%subscription = c_loc(named)
    if (present(reading)) options%reading = reading
    if (present(from)) options%from = from
    if (present(first)) options%first = first
    if (present(group)) options%group = group
    status = open_with(self, name, 2_c_int32_t, rank, size, at, options, timeout_ms)
  end function

  recursive function open_with(self, name, mode, rank, size, at, options, timeout_ms) result(status)
    class(stream_t), intent(inout) :: self
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: mode
    integer(c_int32_t), intent(in), optional :: rank, size
    character(len=*), intent(in), optional :: at
    type(c_options), intent(inout) :: options
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    character(kind=c_char, len=:), allocatable, target :: place
    integer(c_int32_t) :: my_rank, my_size
    my_rank = 0
    my_size = 1
    if (present(rank)) my_rank = rank
    if (present(size)) my_size = size
    place = c_text(at)
    options%at = c_loc(place)
    status = status_of(nessie_stream_open(c_text(name), mode, my_rank, my_size, options, or_default(timeout_ms), &
      self%handle))
  end function

  recursive logical function stream_is_open(self)
    class(stream_t), intent(in) :: self
    stream_is_open = c_associated(self%handle)
  end function

  recursive function stream_close(self, timeout_ms) result(status)
    class(stream_t), intent(inout) :: self
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    status = status_of(nessie_stream_close(self%handle, or_default(timeout_ms)))
    if (status%ok()) self%handle = c_null_ptr
  end function

  recursive function stream_unsubscribe(self, timeout_ms) result(status)
    class(stream_t), intent(inout) :: self
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    status = status_of(nessie_stream_unsubscribe(self%handle, or_default(timeout_ms)))
    if (status%ok()) self%handle = c_null_ptr
  end function

  recursive subroutine stream_drop(self)
    class(stream_t), intent(inout) :: self
    integer(c_int) :: code
    if (c_associated(self%handle)) code = nessie_stream_drop(self%handle)
    self%handle = c_null_ptr
  end subroutine

  ! --- steps ----------------------------------------------------------------------------------------------------------

  ! state: stream_step_ok, stream_not_yet or stream_end.
  recursive function stream_begin_step(self, state, timeout_ms) result(status)
    class(stream_t), intent(in) :: self
    integer(c_int32_t), intent(inout) :: state
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    status = status_of(nessie_stream_begin_step(self%handle, or_default(timeout_ms), state))
  end function

  recursive function stream_end_step(self, timeout_ms) result(status)
    class(stream_t), intent(in) :: self
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    status = status_of(nessie_stream_end_step(self%handle, or_default(timeout_ms)))
  end function

  ! The number of the step that is open, from 0 on; otherwise the next one of a writer, or the last one of a reader.
  recursive function stream_step(self) result(step)
    class(stream_t), intent(in) :: self
    integer(c_int64_t) :: step
    step = nessie_stream_step(self%handle)
  end function

  ! How many steps a reader has not seen between this one and the one before.
  recursive function stream_missed(self) result(missed)
    class(stream_t), intent(in) :: self
    integer(c_int64_t) :: missed
    missed = nessie_stream_missed(self%handle)
  end function

  ! --- what there is in a step ----------------------------------------------------------------------------------------

  ! In the open step of a reader; or as this writer has defined it. nessie_not_found: there is none.
  recursive function stream_find(self, name, variable) result(status)
    class(stream_t), intent(in) :: self
    character(len=*), intent(in) :: name
    type(stream_variable_t), intent(inout) :: variable
    type(nessie_status) :: status
    type(c_ptr) :: found
    type(c_variable), pointer :: it
    status = status_of(nessie_stream_find(self%handle, c_text(name), found))
    if (.not. status%ok()) return
    call c_f_pointer(found, it)
    call see_variable(it, variable)
  end function

  recursive function stream_variables(self, list) result(status)
    class(stream_t), intent(in) :: self
    type(stream_variable_t), allocatable, intent(inout) :: list(:)
    type(nessie_status) :: status
    type(c_ptr) :: begin
    integer(c_int64_t) :: count
    status = status_of(nessie_stream_variables(self%handle, begin, count))
    if (status%ok()) call see_variables(begin, count, list)
  end function

  recursive function stream_attributes(self, list) result(status)
    class(stream_t), intent(in) :: self
    type(stream_attribute_t), allocatable, intent(inout) :: list(:)
    type(nessie_status) :: status
    type(c_ptr) :: begin
    integer(c_int64_t) :: count
    status = status_of(nessie_stream_attributes(self%handle, begin, count))
    if (status%ok()) call see_attributes(begin, count, list)
  end function

  ! Minimum, maximum and mean of a box, computed at the servers; `count` absent: of all from `start` on.
  recursive function stream_figures(self, variable, figures, start, count, timeout_ms) result(status)
    class(stream_t), intent(in) :: self
    character(len=*), intent(in) :: variable
    type(stream_figures_t), intent(inout), target :: figures
    type(*), intent(in), optional :: start(:), count(:)
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    status = status_of(nessie_fortran_stream_figures(self%handle, c_text(variable), start, count, &
      or_default(timeout_ms), c_loc(figures)))
  end function

  ! A text attribute, all of it.
  recursive function fetch_text(self, name, value, variable) result(status)
    class(stream_t), intent(in) :: self
    character(len=*), intent(in) :: name
    character(len=:), allocatable, intent(inout) :: value
    character(len=*), intent(in), optional :: variable
    type(nessie_status) :: status
    type(c_ptr) :: found
    type(c_attribute), pointer :: it
    character(kind=c_char), pointer, contiguous :: characters(:)
    integer(c_int64_t) :: i
    status = status_of(nessie_stream_find_attribute(self%handle, c_text(variable), c_text(name), found))
    if (.not. status%ok()) return
    call c_f_pointer(found, it)
    if (it%type /= stream_char) then
      status = nessie_error(nessie_invalid_argument, name // ' is no text: give numbers of its type')
      return
    end if
    if (allocated(value)) deallocate (value)
    allocate (character(len=it%count) :: value)
    if (it%count == 0) return
    call c_f_pointer(it%value, characters, [it%count])
    do i = 1, it%count
      value(i:i) = characters(i)
    end do
  end function

  ! --- what writers say of arrays -------------------------------------------------------------------------------------

  ! Describes an array; again, with another shape, at the beginning of any step. constant: put in one step, its value holds
  ! until it is put again. fill, of the type of the array: what elements have that nobody has put.
  recursive function define_plain(self, name, type, shape, constant) result(status)
    class(stream_t), intent(in) :: self
    character(len=*), intent(in) :: name
    integer(c_int32_t), intent(in) :: type
    type(*), intent(in) :: shape(:)
    logical, intent(in), optional :: constant
    type(nessie_status) :: status
    status = status_of(nessie_fortran_stream_define(self%handle, c_text(name), type, shape, is_constant=flag(constant)))
  end function

  recursive function flag(it) result(number)
    logical, intent(in), optional :: it
    integer(c_int32_t) :: number
    number = 0
    if (present(it)) number = merge(1, 0, it)
  end function

  ! --- who is there, and memory ---------------------------------------------------------------------------------------

  ! All streams of the servers; those of this user on this node, if `at` is absent.
  recursive function stream_list(list, at, timeout_ms) result(status)
    type(stream_info_t), allocatable, intent(inout) :: list(:)
    character(len=*), intent(in), optional :: at
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    type(infos_t), target :: infos
    allocate (infos%list(0))
    status = status_of(nessie_stream_list(c_text(at), or_default(timeout_ms), c_funloc(see_info), c_loc(infos)))
    if (status%ok()) call move_alloc(infos%list, list)
  end function

  recursive subroutine see_info(from, context) bind(C)
    type(c_info), intent(in) :: from
    type(c_ptr), value :: context
    type(infos_t), pointer :: infos
    type(stream_info_t), allocatable :: more(:)
    integer :: n
    call c_f_pointer(context, infos)
    n = size(infos%list)
    allocate (more(n + 1))
    more(:n) = infos%list
    more(n + 1)%name = nessie_text(from%name)
    more(n + 1)%status = from%status
    more(n + 1)%why = nessie_text(from%why)
    more(n + 1)%is_file = from%is_file /= 0
    more(n + 1)%writers = from%writers
    more(n + 1)%connected = from%connected
    more(n + 1)%durability = from%durability
    more(n + 1)%steps = from%steps
    more(n + 1)%oldest = from%oldest
    more(n + 1)%memory_bytes = from%memory_bytes
    more(n + 1)%log_bytes = from%log_bytes
    call see_variables(from%variables, from%variable_count, more(n + 1)%variables)
    call see_attributes(from%attributes, from%attribute_count, more(n + 1)%attributes)
    call see_readers(from%readers, from%reader_count, more(n + 1)%readers)
    call move_alloc(more, infos%list)
  end subroutine

  recursive subroutine see_readers(begin, count, to)
    type(c_ptr), intent(in) :: begin
    integer(c_int64_t), intent(in) :: count
    type(stream_reader_info_t), allocatable, intent(inout) :: to(:)
    type(c_reader_info), pointer, contiguous :: from(:)
    integer(c_int64_t) :: i
    allocate (to(count))
    if (count == 0) return
    call c_f_pointer(begin, from, [count])
    do i = 1, count
      to(i)%subscription = nessie_text(from(i)%subscription)
      to(i)%reading = from(i)%reading
      to(i)%size = from(i)%size
      to(i)%connected = from(i)%connected
      to(i)%ended = from(i)%ended
      to(i)%lag = from(i)%lag
      to(i)%missed = from(i)%missed
    end do
  end subroutine

  ! Memory that servers on this node can reach at once: what is got into it is copied once, and quickly. Zeroed.
  ! c_f_pointer(memory, array, shape) makes an array of it.
  recursive function stream_allocate(size_bytes, memory) result(status)
    integer(c_int64_t), intent(in) :: size_bytes
    type(c_ptr), intent(inout) :: memory
    type(nessie_status) :: status
    status = status_of(nessie_stream_allocate(size_bytes, memory))
  end function

  recursive function stream_free(memory) result(status)
    type(c_ptr), intent(inout) :: memory
    type(nessie_status) :: status
    status = status_of(nessie_stream_free(memory))
    if (status%ok()) memory = c_null_ptr
  end function

  ! --- the shared space -----------------------------------------------------------------------------------------------

  recursive function space_open(self, at, timeout_ms) result(status)
    class(space_t), intent(inout) :: self
    character(len=*), intent(in), optional :: at
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    status = status_of(nessie_space_open(c_text(at), or_default(timeout_ms), self%handle))
  end function

  recursive function space_close(self) result(status)
    class(space_t), intent(inout) :: self
    type(nessie_status) :: status
    status = status_of(nessie_space_close(self%handle))
    if (status%ok()) self%handle = c_null_ptr
  end function

  ! The newest version of which anything was put. nessie_not_found: there is none.
  recursive function space_newest(self, name, version, timeout_ms) result(status)
    class(space_t), intent(in) :: self
    character(len=*), intent(in) :: name
    integer(c_int64_t), intent(inout) :: version
    integer(c_int32_t), intent(in), optional :: timeout_ms
    type(nessie_status) :: status
    status = status_of(nessie_space_newest(self%handle, c_text(name), or_default(timeout_ms), version))
  end function

  ! --- arrays of each type --------------------------------------------------------------------------------------------

#define ELEMENT NUMBER
#define POINTED NUMBER
#define NUMBER integer(c_int8_t)
#define NAMED(what) what/**/_int8
#include "streams.inc"
#undef NUMBER
#undef NAMED
#define NUMBER integer(c_int16_t)
#define NAMED(what) what/**/_int16
#include "streams.inc"
#undef NUMBER
#undef NAMED
#define NUMBER integer(c_int32_t)
#define NAMED(what) what/**/_int32
#include "streams.inc"
#undef NUMBER
#undef NAMED
#define NUMBER integer(c_int64_t)
#define NAMED(what) what/**/_int64
#include "streams.inc"
#undef NUMBER
#undef NAMED
#define NUMBER real(c_float)
#define NAMED(what) what/**/_float
#include "streams.inc"
#undef NUMBER
#undef NAMED
#define NUMBER real(c_double)
#define NAMED(what) what/**/_double
#include "streams.inc"
#undef NUMBER
#undef NAMED
#undef ELEMENT
#undef POINTED
#define TEXT
#define NUMBER character(kind=c_char, len=*)
#define ELEMENT character(kind=c_char)
#define POINTED character(kind=c_char, len=:)
#define NAMED(what) what/**/_char
#include "streams.inc"
end module
