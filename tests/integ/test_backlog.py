# SPDX-License-Identifier: BSD-2-Clause
"""Twenty clients of the kernel and a listener of darter's with a backlog of four that accepts
nobody for five seconds (case S07 a): all are served in the end, by the kernel's own repetitions,
and nobody is reset.
"""
import signal
import socket
import threading

import lab

PORT = 8080
CLIENTS = 20
BYTES = 100
WAIT_MS = 5000
PATIENCE = 60		# seconds; the kernel repeats its SYN after 1, 3, 7, 15 s


def one_client(answers, number):
    try:
        with socket.create_connection((lab.DARTER_IP, PORT), timeout=PATIENCE) as sock:
            sock.sendall(b'x' * BYTES)
            answers[number] = sock.recv(64).decode()
    except OSError as error:
        answers[number] = str(error)


def one_run(l, number, netisrs):
    server = l.server('integ_late_accept', ['-p', PORT, 4, WAIT_MS, BYTES], netisrs=netisrs,
                      tap=f'dtap{number}')
    resets = lab.kernel_counters('Tcp')['EstabResets']
    answers = {}
    threads = [threading.Thread(target=one_client, args=(answers, i)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wrong = {i: a for i, a in answers.items() if a != 'served\n'}
    lab.check(not wrong, f'{netisrs} netisrs: clients that were not served: {wrong}')
    lab.check_equal(lab.kernel_counters('Tcp')['EstabResets'], resets,
                    f'{netisrs} netisrs: connections that the kernel saw reset')
    server.stop(signal.SIGTERM)
    report = server.last_report()
    lab.check_equal(report.values['served'], CLIENTS, f'{netisrs} netisrs: served')
    lab.check_equal(report.counters['tcp_resets_sent'], 0, f'{netisrs} netisrs: tcp_resets_sent')
    lab.check(report.counters['drop_tcp_listen_full'] > 0, 'the accept queue was never full')
    lab.say(f'{netisrs} netisrs: all {CLIENTS} served; '
            f'{report.counters["drop_tcp_listen_full"]} segments found the queue full')


def test(l):
    one_run(l, 0, 1)
    one_run(l, 1, 2)


lab.main(test)
