"""perftest's ib_read_lat and ib_read_bw in the guest: an independent reader on the device that source rdma uses."""

import shutil

PROGRAMS = ["ib_read_lat", "ib_read_bw"]


def there():
    return all(shutil.which(program) for program in PROGRAMS)


def command(size, under_way, number, address):
    """Script of a step: reads of `size` bytes by one queue pair from a process of the same machine."""
    program = f"ib_read_lat -n {number} -s {size}" if under_way == 1 else f"ib_read_bw -q 1 -t {under_way} -n {number} -s {size}"
    program += " -d rxe0 -x 1 -F"
    return (f"{program} >peer.out 2>&1 &\nstatus=1\n"
            f"for i in $(seq 100); do sleep 0.2; taskset 2 {program} {address} && status=0 && break; done\n"
            "wait $!\nexit $status")


def mean_us(output, size, under_way):
    """Microseconds a read, of what the step printed."""
    rows = [line.split() for line in output.splitlines()]
    row = next(row for row in rows if len(row) >= 5 and row[0].isdigit() and row[1].isdigit())
    return float(row[5]) if under_way == 1 else size / float(row[3]) / 1.048576  # MiB/s
