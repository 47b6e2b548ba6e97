# SPDX-License-Identifier: BSD-2-Clause
"""The laboratory of the integration tests: a network namespace with darter on a DPDK tap port at
one end and the Linux kernel at the other.

A test is a script that calls lab.main(function). main() starts the script again inside a namespace
of its own (a user namespace too when not root), where nothing else is seen and nothing is left
behind, and ends it with status 77 and the reason when there are no rights or no tap to be had.

The driver compares what both ends counted: darter's reports (tests/integ/prog.h) and the kernel's
/proc/net counters, which are the namespace's own and begin at 0.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

SKIP = 77
DARTER_IP = '10.66.0.2'
KERNEL_IP = '10.66.0.1'
INSIDE = 'DARTER_LAB_INSIDE'
START_SECONDS = 40	# EAL maps its memory; slow when the machine is busy


class Failed(Exception):
    """What a test found wrong, in a sentence."""


def check(condition, sentence):
    if not condition:
        raise Failed(sentence)


def check_equal(got, wanted, what):
    check(got == wanted, f'{what}: {got}, expected {wanted}')


def say(*words):
    print(*words, flush=True)


def skip(reason):
    say(f'skipped: {reason}')
    sys.exit(SKIP)


def tool(name):
    """Path of a program, or the test ends as skipped."""
    path = shutil.which(name, path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin')
    if path is None:
        skip(f'{name} is not installed')
    return path


def has_tool(name):
    return shutil.which(name, path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin') is not None


def binary(name):
    """A program of the build, found by its name where the build says it is."""
    for folder in os.environ['DARTER_BINARIES'].split(':'):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    raise Failed(f'no program {name} in {os.environ["DARTER_BINARIES"]}')


def run(*argv, **options):
    """Runs a command to its end and returns its standard output; Failed when it fails."""
    options.setdefault('timeout', 60)
    done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    check(done.returncode == 0, f'{" ".join(map(str, argv))} ended with {done.returncode}: '
          f'{done.stdout.strip()}')
    return done.stdout


# ---- entering ----

def why_no_namespace():
    """The command that enters a namespace, or the reason why there is none."""
    command = ['unshare', '-n'] if os.geteuid() == 0 else ['unshare', '-U', '-r', '-n']
    if shutil.which('unshare') is None:
        return None, 'unshare (util-linux) is not installed'
    try:
        os.close(os.open('/dev/net/tun', os.O_RDWR))
    except OSError as error:
        return None, f'/dev/net/tun: {error.strerror}'
    probe = subprocess.run(command + ['ip', 'link', 'set', 'lo', 'up'], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True)
    if probe.returncode != 0:
        who = 'root' if os.geteuid() == 0 else 'neither root nor user namespaces'
        return None, f'{who}: {" ".join(command)}: {probe.stderr.strip()}'
    probe = subprocess.run(command + ['ip', 'tuntap', 'add', 'probe0', 'mode', 'tap'],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if probe.returncode != 0:
        return None, f'no tap can be made here: {probe.stderr.strip()}'
    return command, None


def main(function):
    """Runs function(lab) inside; exit status 0 passed, 77 skipped, 1 failed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if os.environ.get(INSIDE) != '1':
        os.environ['PATH'] = os.environ.get('PATH', '/usr/bin:/bin') + ':/usr/sbin:/sbin'
        command, reason = why_no_namespace()
        if command is None:
            skip(reason)
        os.environ[INSIDE] = '1'
        os.execvp(command[0], command + [sys.executable] + sys.argv)
    with tempfile.TemporaryDirectory(prefix='darter-integ-') as folder:
        lab = Lab(folder)
        try:
            run('ip', 'link', 'set', 'lo', 'up')
            function(lab)
        except (Failed, OSError, KeyError) as failure:
            if not isinstance(failure, Failed):
                traceback.print_exc(file=sys.stdout)
            say(f'FAILED: {failure}')
            for server in lab.servers:
                server.tell()
            sys.exit(1)
        finally:
            lab.end()
    say('passed')


class Lab:
    def __init__(self, folder):
        self.folder = folder
        self.servers = []
        self.processes = []
        os.chmod(folder, 0o700)
        os.environ['XDG_RUNTIME_DIR'] = os.path.join(folder, 'run')
        os.mkdir(os.environ['XDG_RUNTIME_DIR'], 0o700)

    def path(self, name):
        return os.path.join(self.folder, name)

    def server(self, program, arguments=(), **options):
        """Starts a darter program on a tap port and gives the kernel its address."""
        server = Server(self, program, arguments, **options)
        self.servers.append(server)
        server.start()
        return server

    def background(self, *argv, **options):
        process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, **options)
        self.processes.append(process)
        return process

    def end(self):
        for process in self.processes + [s.process for s in self.servers if s.process]:
            if process.poll() is None:
                process.kill()
                process.wait()


class Report:
    """One report of a test program (prog.h)."""

    def __init__(self, lines):
        self.counters, self.conns, self.values, self.workers = {}, {}, {}, []
        for words in (line.split() for line in lines):
            if words[1] == 'counter':
                self.counters[words[2]] = int(words[3])
            elif words[1] == 'conn':
                self.conns[words[2]] = int(words[3])
            elif words[1] == 'worker':
                self.workers.append((words[2], int(words[4]), int(words[6])))
            elif words[1] == 'broken':
                raise Failed(' '.join(words[2:]))
            elif len(words) == 3:
                self.values[words[1]] = int(words[2])

    def drops(self):
        return {k: v for k, v in self.counters.items() if k.startswith('drop_') and v > 0}

    def live_conns(self):
        """Connections that hold more than a TIME-WAIT record."""
        return {k: v for k, v in self.conns.items() if k not in ('TIME_WAIT', 'TIME-WAIT',
                                                                 'LISTEN')}


class Server:
    """A program on darter, and what it prints."""

    def __init__(self, lab, program, arguments=(), netisrs=1, keys=(), port_keys=(), tap='dtap0',
                 net='10.66.0', is_kernel_ready=True):
        self.lab, self.tap, self.net = lab, tap, net
        self.is_kernel_ready = is_kernel_ready
        number = re.sub(r'\D', '', tap)
        sets = [f'stack.netisrs={netisrs}', f'port.eth.device=net_tap{number},iface={tap}',
                f'port.eth.addr={net}.2/24', *[f'port.eth.{k}' for k in port_keys], *keys]
        self.argv = [binary(program)]
        for key in sets:
            self.argv += ['-o', key]
        self.argv += [str(a) for a in arguments]
        self.process = None
        self.lines = []
        self.seen = threading.Condition()
        self.ended = False
        self.read_up_to = 0

    def start(self):
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors='replace', cwd=self.lab.folder)
        threading.Thread(target=self._read, daemon=True).start()
        self.wait_line(r'listening', START_SECONDS)
        if self.is_kernel_ready:
            run('ip', 'addr', 'add', f'{self.net}.1/24', 'dev', self.tap)
            run('ip', 'link', 'set', self.tap, 'up')

    def _read(self):
        for line in self.process.stdout:
            with self.seen:
                self.lines.append(line.rstrip('\n'))
                self.seen.notify_all()
        with self.seen:
            self.ended = True
            self.seen.notify_all()

    def wait_line(self, pattern, seconds=20):
        """The next line that matches, of those not yet waited for."""
        deadline = time.monotonic() + seconds
        with self.seen:
            while True:
                while self.read_up_to < len(self.lines):
                    line = self.lines[self.read_up_to]
                    self.read_up_to += 1
                    if re.search(pattern, line):
                        return line
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    what = 'ended' if self.ended else f'was silent for {seconds} s'
                    raise Failed(f'{os.path.basename(self.argv[0])} {what} before it printed '
                                 f'"{pattern}"')
                self.seen.wait(left)

    def report(self):
        """Asks a program of prog.c for its report."""
        with self.seen:
            first = len(self.lines)
        self.process.send_signal(signal.SIGUSR1)
        return self._parse_report(first)

    def _parse_report(self, first):
        self.wait_line(r'^report end')
        return Report([l for l in self.lines[first:self.read_up_to] if l.startswith('report ')])

    def stop(self, sig=signal.SIGTERM, seconds=20):
        """Ends the program by a signal; it must end by itself, with status 0."""
        self.process.send_signal(sig)
        self.finish(seconds)

    def finish(self, seconds=20):
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f'{self.argv[0]} did not end within {seconds} s of its signal') from None
        with self.seen:
            self.seen.wait_for(lambda: self.ended, 5)
        check_equal(status, 0, f'exit status of {os.path.basename(self.argv[0])}')

    def last_report(self):
        lines = [l for l in self.lines if l.startswith('report ')]
        ends = [i for i, l in enumerate(lines) if l == 'report end']
        check(ends, 'no report at the end')
        return Report(lines[ends[-2] + 1 if len(ends) > 1 else 0:ends[-1]])

    def tell(self):
        """Shows what the program said, for whoever reads of the failure."""
        say(f'---- {" ".join(self.argv)} (status {self.process and self.process.poll()})')
        counters = [l for l in self.lines if re.search(r'counter drop_\w+ [1-9]', l)]
        others = [l for l in self.lines if not l.startswith('report counter')]
        say('\n'.join((others + counters)[-80:]))


# ---- what the kernel counted ----

def kernel_counters(protocol):
    """The namespace's counters of /proc/net/snmp and netstat, e.g. of 'Tcp'."""
    values = {}
    for name in ('snmp', 'netstat'):
        with open(f'/proc/self/net/{name}', encoding='ascii') as file:
            lines = file.read().splitlines()
        for names, numbers in zip(lines[::2], lines[1::2]):
            if names.split(':')[0] in (protocol, protocol + 'Ext'):
                values.update(zip(names.split()[1:], map(int, numbers.split()[1:])))
    return values


def kernel_connections(to=DARTER_IP):
    """States of the kernel's TCP sockets to an address, TIME-WAIT left out."""
    states = {1: 'ESTABLISHED', 2: 'SYN-SENT', 4: 'FIN-WAIT-1', 5: 'FIN-WAIT-2', 6: 'TIME-WAIT',
              8: 'CLOSE-WAIT', 9: 'LAST-ACK', 11: 'CLOSING'}
    host = '%08X' % int.from_bytes(bytes(map(int, to.split('.'))), sys.byteorder)
    found = {}
    with open('/proc/self/net/tcp', encoding='ascii') as file:
        for words in (line.split() for line in file.read().splitlines()[1:]):
            state = int(words[3], 16)
            if words[2].startswith(host) and state != 6:
                name = states.get(state, str(state))
                found[name] = found.get(name, 0) + 1
    return found


def wait_until(predicate, seconds, what):
    """Polls; Failed with the last falsy answer when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        if predicate():
            return
        check(time.monotonic() < deadline, f'{what} (after {seconds} s)')
        time.sleep(0.05)


def check_nothing_left(server, seconds=10):
    """Neither end holds a connection; TIME-WAIT is not held."""
    wait_until(lambda: not kernel_connections(), seconds,
               f'the kernel still has connections: {kernel_connections()}')
    wait_until(lambda: not server.report().live_conns(), seconds,
               f'darter still has connections: {server.report().live_conns()}')


def check_clean(report, allowed=()):
    """No packet was dropped that speaks of a fault of either end."""
    bad = {k: v for k, v in report.drops().items()
           if k not in allowed and k not in HARMLESS_DROPS}
    check(not bad, f'darter dropped packets: {bad}')


# What a healthy run may drop: the kernel's own chatter on a new interface (IPv6 neighbour
# discovery, multicast), and segments that crossed a close.
HARMLESS_DROPS = {'drop_ether_proto', 'drop_ether_dst', 'drop_ip_bcast', 'drop_ip_version',
                  'drop_tcp_dup', 'drop_tcp_after_close', 'drop_icmp_type', 'drop_ip_proto',
                  'drop_tcp_no_pcb'}
