# SPDX-License-Identifier: BSD-2-Clause
"""darter connects to the kernel: every connection of every thread is accepted once and echoes its
line; both ends count the same. With one and two netisrs, application and attached threads.
"""
import signal
import socket
import threading

import lab

EACH = 500
PORT = 9000


class EchoServer:
    """Line echo on the kernel's sockets."""

    def __init__(self):
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind(('0.0.0.0', PORT))
        self.sock.listen(512)
        self.accepted = self.echoed = 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._work, daemon=True) for _ in range(4)]
        for thread in self.threads:
            thread.start()

    def _work(self):
        while True:
            conn, _ = self.sock.accept()
            with self.lock:
                self.accepted += 1
            with conn:
                conn.settimeout(20)
                try:
                    while (data := conn.recv(4096)):
                        conn.sendall(data)
                    with self.lock:
                        self.echoed += 1
                except OSError as error:
                    lab.say(f'note: the kernel\'s end: {error}')


def one_run(l, echo, number, netisrs, application, attached):
    before = echo.accepted, echo.echoed
    name = f'{netisrs} netisrs, {application} application and {attached} attached threads'
    client = l.server('integ_connect_loop',
                      ['--threads', application, '--attached', attached, lab.KERNEL_IP, PORT, EACH],
                      netisrs=netisrs, tap=f'dtap{number}')
    client.process.send_signal(signal.SIGUSR1)
    line = client.wait_line(r'^connected', 60)
    wanted = EACH * (application + attached)
    lab.check_equal(line, f'connected {wanted} echoed {wanted}', name)
    client.finish()
    lab.wait_until(lambda: echo.echoed - before[1] == wanted, 10,
                   f'{name}: the kernel echoed {echo.echoed - before[1]} of {wanted}')
    lab.check_equal(echo.accepted - before[0], wanted, f'{name}: connections the kernel accepted')
    report = client.last_report()
    lab.check_equal(report.counters['tcp_connects'], wanted, f'{name}: counter tcp_connects')
    # Steering may let packets overtake each other (test_modes.py).
    lab.check_clean(report, ('drop_tcp_paws', 'drop_tcp_window') if netisrs > 1 else ())
    lab.say(f'{name}: {wanted} connections; steered {report.counters["steered_pkts"]}')


def test(l):
    echo = EchoServer()
    for number, run in enumerate([(1, 1, 0), (1, 0, 1), (2, 2, 0), (2, 1, 1), (2, 0, 2)]):
        one_run(l, echo, number, *run)


lab.main(test)
