! SPDX-License-Identifier: BSD-3-Clause
!
! A flame kernel in a stirred box: five species react, diffuse and are carried along by a decaying vortex, in a periodic
! cube that is decomposed in x, y and z. Every few steps all ten fields are written to a new file with PnetCDF, each
! with one collective put: the checkpoint of a direct numerical simulation of combustion such as S3D.
!
! Build:   mpif90 -O2 reaction_diffusion.f90 -o reaction_diffusion -lpnetcdf    (with PnetCDF's module in the -I path)
! Run:     mpiexec -n 8 ./reaction_diffusion --n 32 --steps 40 --interval 10 --prefix /tmp/flame
! Options: --n N         cells per process and direction (32); the box then has N times the process grid
!          --grid X,Y,Z  cells of the whole box instead: files are then the same bytes on any number of processes
!          --steps S     time steps (40);  --interval I  steps between checkpoints (10)
!          --prefix P    files are "P.0010.nc", ... (flame)
! Expected output (the times differ):
!          64 x 64 x 64 cells on 8 processes (2 x 2 x 2), 4 checkpoints of 20.0 MiB
!          step   10  hottest  3.21  radical 0.1016  mass error 2.2E-16  checkpoint  0.026 s   801.2 MB/s
!          ...
!          result bytes=83886080 checkpoints=4 io_s=0.139627 compute_s=0.167200 run_s=0.306827

module setup
  use mpi
  implicit none
  integer, parameter :: dp = kind(1.0d0)
  real(dp), parameter :: two_pi = 8.0_dp * atan(1.0_dp)

  type options_t
    integer :: n = 32, steps = 40, interval = 10
    integer :: grid(3) = 0
    character(len=512) :: prefix = 'flame'
  end type

  type domain_t
    integer :: comm, rank, processes
    integer :: shape(3), coords(3)        ! of the process grid
    integer :: cells(3)                   ! of the whole box
    integer :: first(3), local(3)         ! this process's block: cells before it, and its own
    integer :: lower(3), upper(3)         ! neighbouring ranks
    real(dp) :: spacing(3)
  end type

contains

  subroutine die(message)
    character(len=*), intent(in) :: message
    integer :: ierr
    write (0, '(2a)') 'reaction_diffusion: ', message
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine

  function read_options() result(options)
    type(options_t) :: options
    character(len=512) :: key, value
    integer :: i, status
    status = 0
    do i = 1, command_argument_count() - 1, 2
      call get_command_argument(i, key)
      call get_command_argument(i + 1, value)
      select case (key)
      case ('--n');        read (value, *, iostat=status) options%n
      case ('--steps');    read (value, *, iostat=status) options%steps
      case ('--interval'); read (value, *, iostat=status) options%interval
      case ('--grid');     read (value, *, iostat=status) options%grid
      case ('--prefix');   options%prefix = value
      case default;        status = 1
      end select
      if (status /= 0) call die('cannot use "' // trim(key) // ' ' // trim(value) // '"; see the head of the source')
    end do
    if (mod(command_argument_count(), 2) /= 0) call die('every option takes a value; see the head of the source')
    if (options%n < 1 .or. options%steps < 1 .or. options%interval < 1 .or. any(options%grid < 0)) &
      call die('--n, --grid, --steps and --interval must be positive')
  end function

  ! Cuts the box into blocks that differ by at most one cell in each direction.
  function decompose(options) result(domain)
    type(options_t), intent(in) :: options
    type(domain_t) :: domain
    integer :: axis, ierr
    call MPI_Comm_size(MPI_COMM_WORLD, domain%processes, ierr)
    domain%shape = 0
    call MPI_Dims_create(domain%processes, 3, domain%shape, ierr)
    call MPI_Cart_create(MPI_COMM_WORLD, 3, domain%shape, [.true., .true., .true.], .false., domain%comm, ierr)
    call MPI_Comm_rank(domain%comm, domain%rank, ierr)
    call MPI_Cart_coords(domain%comm, domain%rank, 3, domain%coords, ierr)
    domain%cells = merge(options%grid, options%n * domain%shape, options%grid > 0)
    if (any(domain%cells < domain%shape)) call die('--grid has fewer cells than there are processes')
    do axis = 1, 3
      call MPI_Cart_shift(domain%comm, axis - 1, 1, domain%lower(axis), domain%upper(axis), ierr)
      domain%first(axis) = block_begin(domain%coords(axis), axis)
      domain%local(axis) = block_begin(domain%coords(axis) + 1, axis) - domain%first(axis)
    end do
    domain%spacing = two_pi / domain%cells
  contains
    integer function block_begin(block, axis)
      integer, intent(in) :: block, axis
      block_begin = int(int(domain%cells(axis), 8) * block / domain%shape(axis))
    end function
  end function

end module setup

! The box's contents and how they change. All quantities are dimensionless.
module flame
  use setup
  implicit none

  integer, parameter :: fields = 10, transported = 6
  integer, parameter :: fuel = 1, oxidizer = 2, radical = 3, product = 4, inert = 5, temperature = 6
  integer, parameter :: velocity_x = 7, velocity_y = 8, velocity_z = 9, pressure = 10
  character(len=11), parameter :: field_name(fields) = [character(len=11) :: 'fuel', 'oxidizer', 'radical', 'product', &
    'inert', 'temperature', 'velocity_x', 'velocity_y', 'velocity_z', 'pressure']

  real(dp), parameter :: diffusivity = 0.05_dp, viscosity = 0.05_dp, vortex_speed = 0.5_dp
  real(dp), parameter :: ignition_rate = 400.0_dp, ignition_temperature = 8.0_dp
  real(dp), parameter :: recombination_rate = 4.0_dp, heat_release = 6.0_dp

contains

  ! Fuel and oxidizer mixed in smooth bands, with a hot kernel in the middle of the box.
  subroutine ignite(domain, state)
    type(domain_t), intent(in) :: domain
    real(dp), intent(out) :: state(:, :, :, :)
    integer :: i, j, k
    real(dp) :: x, y, z
    do k = 1, domain%local(3)
      z = coordinate(domain, 3, k)
      do j = 1, domain%local(2)
        y = coordinate(domain, 2, j)
        do i = 1, domain%local(1)
          x = coordinate(domain, 1, i)
          state(i, j, k, fuel) = 0.2_dp + 0.1_dp * cos(y)
          state(i, j, k, oxidizer) = 0.2_dp - 0.1_dp * cos(y)
          state(i, j, k, radical:product) = 0.0_dp
          state(i, j, k, inert) = 0.6_dp
          state(i, j, k, temperature) = 1.0_dp + 2.0_dp * exp(cos(x - two_pi / 2) + cos(y - two_pi / 2) + &
            cos(z - two_pi / 2) - 3.0_dp)
        end do
      end do
    end do
    call stir(domain, 0.0_dp, state)
  end subroutine

  ! The Arnold-Beltrami-Childress vortex: an exact solution of the Navier-Stokes equations that decays without changing
  ! its form. The velocity is its own curl, so that p + |u|^2 / 2 is the same everywhere.
  subroutine stir(domain, time, state)
    type(domain_t), intent(in) :: domain
    real(dp), intent(in) :: time
    real(dp), intent(inout) :: state(:, :, :, :)
    integer :: i, j, k
    real(dp) :: speed
    real(dp) :: sin_x(domain%local(1)), sin_y(domain%local(2)), sin_z(domain%local(3))
    real(dp) :: cos_x(domain%local(1)), cos_y(domain%local(2)), cos_z(domain%local(3))
    speed = vortex_speed * exp(-viscosity * time)
    sin_x = [(sin(coordinate(domain, 1, i)), i = 1, domain%local(1))]
    cos_x = [(cos(coordinate(domain, 1, i)), i = 1, domain%local(1))]
    sin_y = [(sin(coordinate(domain, 2, i)), i = 1, domain%local(2))]
    cos_y = [(cos(coordinate(domain, 2, i)), i = 1, domain%local(2))]
    sin_z = [(sin(coordinate(domain, 3, i)), i = 1, domain%local(3))]
    cos_z = [(cos(coordinate(domain, 3, i)), i = 1, domain%local(3))]
    do k = 1, domain%local(3)
      do j = 1, domain%local(2)
        do i = 1, domain%local(1)
          state(i, j, k, velocity_x) = speed * (sin_z(k) + cos_y(j))
          state(i, j, k, velocity_y) = speed * (sin_x(i) + cos_z(k))
          state(i, j, k, velocity_z) = speed * (sin_y(j) + cos_x(i))
          state(i, j, k, pressure) = 1.0_dp - 0.5_dp * (state(i, j, k, velocity_x)**2 + &
            state(i, j, k, velocity_y)**2 + state(i, j, k, velocity_z)**2)
        end do
      end do
    end do
  end subroutine

  ! One explicit Euler step: every transported field is carried along and diffuses, then the species react.
  subroutine advance(domain, time, dt, state)
    type(domain_t), intent(in) :: domain
    real(dp), intent(in) :: time, dt
    real(dp), intent(inout) :: state(:, :, :, :)
    integer :: f
    do f = 1, transported
      call transport(domain, dt, state(:, :, :, velocity_x:velocity_z), state(:, :, :, f))
    end do
    call react(domain, dt, state)
    call stir(domain, time + dt, state)
  end subroutine

  subroutine transport(domain, dt, velocity, field)
    type(domain_t), intent(in) :: domain
    real(dp), intent(in) :: dt, velocity(:, :, :, :)
    real(dp), intent(inout) :: field(:, :, :)
    real(dp) :: p(0:domain%local(1) + 1, 0:domain%local(2) + 1, 0:domain%local(3) + 1)
    real(dp) :: slope(3), spread(3)
    integer :: i, j, k
    p(1:domain%local(1), 1:domain%local(2), 1:domain%local(3)) = field
    call exchange_halo(domain, p)
    slope = 0.5_dp / domain%spacing
    spread = diffusivity / domain%spacing**2
    do k = 1, domain%local(3)
      do j = 1, domain%local(2)
        do i = 1, domain%local(1)
          field(i, j, k) = p(i, j, k) + dt * ( &
            spread(1) * (p(i + 1, j, k) - 2 * p(i, j, k) + p(i - 1, j, k)) + &
            spread(2) * (p(i, j + 1, k) - 2 * p(i, j, k) + p(i, j - 1, k)) + &
            spread(3) * (p(i, j, k + 1) - 2 * p(i, j, k) + p(i, j, k - 1)) - &
            slope(1) * velocity(i, j, k, 1) * (p(i + 1, j, k) - p(i - 1, j, k)) - &
            slope(2) * velocity(i, j, k, 2) * (p(i, j + 1, k) - p(i, j - 1, k)) - &
            slope(3) * velocity(i, j, k, 3) * (p(i, j, k + 1) - p(i, j, k - 1)))
        end do
      end do
    end do
  end subroutine

  ! fuel + oxidizer -> radical where it is hot enough (Arrhenius); radical -> product, which sets the heat free.
  ! What one species loses another gains: the mass fractions sum to one.
  subroutine react(domain, dt, state)
    type(domain_t), intent(in) :: domain
    real(dp), intent(in) :: dt
    real(dp), intent(inout) :: state(:, :, :, :)
    integer :: i, j, k
    real(dp) :: ignited, recombined
    do k = 1, domain%local(3)
      do j = 1, domain%local(2)
        do i = 1, domain%local(1)
          ignited = dt * ignition_rate * state(i, j, k, fuel) * state(i, j, k, oxidizer) * &
            exp(-ignition_temperature / state(i, j, k, temperature))
          recombined = dt * recombination_rate * state(i, j, k, radical)
          state(i, j, k, fuel) = state(i, j, k, fuel) - ignited
          state(i, j, k, oxidizer) = state(i, j, k, oxidizer) - ignited
          state(i, j, k, radical) = state(i, j, k, radical) + 2 * ignited - recombined
          state(i, j, k, product) = state(i, j, k, product) + recombined
          state(i, j, k, temperature) = state(i, j, k, temperature) + heat_release * recombined
        end do
      end do
    end do
  end subroutine

  ! Fills the layer around a block from its six neighbours (those across the box's faces too: it is periodic).
  subroutine exchange_halo(domain, p)
    type(domain_t), intent(in) :: domain
    real(dp), intent(inout) :: p(0:, 0:, 0:)
    integer :: nx, ny, nz
    nx = domain%local(1); ny = domain%local(2); nz = domain%local(3)
    call swap(1, p(1, 1:ny, 1:nz), p(nx, 1:ny, 1:nz), p(0, 1:ny, 1:nz), p(nx + 1, 1:ny, 1:nz))
    call swap(2, p(1:nx, 1, 1:nz), p(1:nx, ny, 1:nz), p(1:nx, 0, 1:nz), p(1:nx, ny + 1, 1:nz))
    call swap(3, p(1:nx, 1:ny, 1), p(1:nx, 1:ny, nz), p(1:nx, 1:ny, 0), p(1:nx, 1:ny, nz + 1))
  contains
    subroutine swap(axis, my_lower, my_upper, ghost_lower, ghost_upper)
      integer, intent(in) :: axis
      real(dp), intent(in) :: my_lower(:, :), my_upper(:, :)
      real(dp), intent(inout) :: ghost_lower(:, :), ghost_upper(:, :)
      real(dp), dimension(size(my_lower, 1), size(my_lower, 2)) :: outgoing, incoming
      integer :: count, ierr
      count = size(my_lower)
      outgoing = my_upper
      call MPI_Sendrecv(outgoing, count, MPI_DOUBLE_PRECISION, domain%upper(axis), axis, &
        incoming, count, MPI_DOUBLE_PRECISION, domain%lower(axis), axis, domain%comm, MPI_STATUS_IGNORE, ierr)
      ghost_lower = incoming
      outgoing = my_lower
      call MPI_Sendrecv(outgoing, count, MPI_DOUBLE_PRECISION, domain%lower(axis), 3 + axis, &
        incoming, count, MPI_DOUBLE_PRECISION, domain%upper(axis), 3 + axis, domain%comm, MPI_STATUS_IGNORE, ierr)
      ghost_upper = incoming
    end subroutine
  end subroutine

  real(dp) function coordinate(domain, axis, cell)
    type(domain_t), intent(in) :: domain
    integer, intent(in) :: axis, cell
    coordinate = (domain%first(axis) + cell - 0.5_dp) * domain%spacing(axis)
  end function

  ! Half of what the fastest process (diffusion, flow, recombination) would allow an explicit step.
  real(dp) function stable_step(domain)
    type(domain_t), intent(in) :: domain
    real(dp) :: h
    h = minval(domain%spacing)
    stable_step = 0.5_dp * min(h**2 / (6 * diffusivity), diffusivity / vortex_speed**2, h / (4 * vortex_speed), &
      0.2_dp / recombination_rate)
  end function

end module flame

module checkpoint
  use flame
  use pnetcdf
  implicit none

contains

  ! Writes all fields to "<prefix>.<step>.nc": a new file, ten three-dimensional variables, one collective put each.
  subroutine write_checkpoint(domain, prefix, step, time, state)
    type(domain_t), intent(in) :: domain
    character(len=*), intent(in) :: prefix
    integer, intent(in) :: step
    real(dp), intent(in) :: time
    real(dp), intent(inout) :: state(:, :, :, :)      ! not changed; nf90mpi_put_var_all wants to be allowed to
    integer :: ncid, dims(3), variable(fields), axis, f
    integer(MPI_OFFSET_KIND) :: start(3), count(3)
    character(len=12) :: suffix
    write (suffix, '(a, i4.4, a)') '.', step, '.nc'
    call check(nf90mpi_create(domain%comm, prefix // trim(suffix), ior(NF90_CLOBBER, NF90_64BIT_DATA), &
      MPI_INFO_NULL, ncid))
    do axis = 1, 3
      call check(nf90mpi_def_dim(ncid, 'xyz'(axis:axis), int(domain%cells(axis), MPI_OFFSET_KIND), dims(axis)))
    end do
    do f = 1, fields
      call check(nf90mpi_def_var(ncid, trim(field_name(f)), NF90_DOUBLE, dims, variable(f)))
    end do
    call check(nf90mpi_put_att(ncid, NF90_GLOBAL, 'step', step))
    call check(nf90mpi_put_att(ncid, NF90_GLOBAL, 'time', time))
    call check(nf90mpi_enddef(ncid))
    start = domain%first + 1
    count = domain%local
    do f = 1, fields
      call check(nf90mpi_put_var_all(ncid, variable(f), state(:, :, :, f), start, count))
    end do
    call check(nf90mpi_close(ncid))
  end subroutine

  subroutine check(status)
    integer, intent(in) :: status
    if (status /= NF90_NOERR) call die(trim(nf90mpi_strerror(status)))
  end subroutine

end module checkpoint

program reaction_diffusion
  use, intrinsic :: iso_fortran_env, only: output_unit
  use checkpoint
  implicit none
  type(options_t) :: options
  type(domain_t) :: domain
  real(dp), allocatable :: state(:, :, :, :)
  real(dp) :: began, io_s, run_s, time, dt, bytes
  integer :: step, checkpoints, ierr

  call MPI_Init(ierr)
  options = read_options()
  domain = decompose(options)
  checkpoints = options%steps / options%interval
  bytes = 8.0_dp * fields * product_of(domain%cells)
  if (domain%rank == 0) print '(2(i0, " x "), i0, " cells on ", i0, " processes (", 2(i0, " x "), i0, "), ", i0, ' // &
    '" checkpoints of ", f0.1, " MiB")', domain%cells, domain%processes, domain%shape, checkpoints, bytes / 2**20

  allocate (state(domain%local(1), domain%local(2), domain%local(3), fields))
  call ignite(domain, state)
  dt = stable_step(domain)
  time = 0
  io_s = 0
  call MPI_Barrier(domain%comm, ierr)
  began = MPI_Wtime()
  do step = 1, options%steps
    call advance(domain, time, dt, state)
    time = time + dt
    if (mod(step, options%interval) == 0) call save_state
  end do
  call MPI_Barrier(domain%comm, ierr)
  run_s = MPI_Wtime() - began
  if (domain%rank == 0) print '("result bytes=", i0, " checkpoints=", i0, 6a)', nint(bytes * checkpoints, 8), &
    checkpoints, ' io_s=', decimal(io_s), ' compute_s=', decimal(run_s - io_s), ' run_s=', decimal(run_s)
  deallocate (state)
  call MPI_Finalize(ierr)

contains

  ! The time of a checkpoint is that of the slowest process, from when all are ready to write.
  subroutine save_state
    real(dp) :: mine, slowest, local(3), global(3)
    call MPI_Barrier(domain%comm, ierr)
    mine = MPI_Wtime()
    call write_checkpoint(domain, trim(options%prefix), step, time, state)
    mine = MPI_Wtime() - mine
    call MPI_Allreduce(mine, slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, domain%comm, ierr)
    io_s = io_s + slowest
    local = [maxval(state(:, :, :, temperature)), maxval(state(:, :, :, radical)), &
      maxval(abs(sum(state(:, :, :, fuel:inert), dim=4) - 1))]
    call MPI_Reduce(local, global, 3, MPI_DOUBLE_PRECISION, MPI_MAX, 0, domain%comm, ierr)
    if (domain%rank == 0) print '("step ", i4, "  hottest ", f5.2, "  radical ", f6.4, "  mass error ", es7.1, ' // &
      '"  checkpoint ", f6.3, " s ", f7.1, " MB/s")', step, global, slowest, bytes / slowest / 1d6
    flush (output_unit)
  end subroutine

  function decimal(seconds) result(text)
    real(dp), intent(in) :: seconds
    character(len=:), allocatable :: text
    character(len=20) :: padded
    write (padded, '(f20.6)') seconds
    text = trim(adjustl(padded))
  end function

  real(dp) function product_of(cells)
    integer, intent(in) :: cells(3)
    product_of = real(cells(1), dp) * cells(2) * cells(3)
  end function

end program reaction_diffusion
