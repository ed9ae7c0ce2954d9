"""What goes wrong beneath one replica alone: its wall clock, the disk of its history, and its lines to its peers."""
import ctypes
import errno
import mmap
import os
import re
import select
import socket
import struct
import subprocess
import threading
import time

NO_LIMIT = (1 << 63) - 1
LIBRARY = 'rig_faults.so'  # built beside preheat


class Control(ctypes.Structure):
    """As tests/rig/faults.c has it."""

    _fields_ = [('ahead_ms', ctypes.c_int64), ('room', ctypes.c_int64), ('struck', ctypes.c_int64),
                ('error', ctypes.c_int32), ('is_told', ctypes.c_int32), ('ports', ctypes.c_uint16 * 2 * 8),
                ('path', ctypes.c_char * 256)]


class Faults:
    """Of a replica, to be made before it starts, with its lines."""

    def __init__(self, controller, lines):
        name, library = controller.log + '.faults', os.path.join(os.path.dirname(controller.command[0]), LIBRARY)
        with open(name, 'w+b') as file:
            file.truncate(mmap.PAGESIZE)
            self.now = Control.from_buffer(mmap.mmap(file.fileno(), mmap.PAGESIZE))
        self.now.room, self.now.path = NO_LIMIT, controller.db.encode()
        for place, line in enumerate(lines):
            self.now.ports[place][:] = line.to, line.port
        # Sanitizers want to come first; their functions call ours.
        needed = subprocess.run(['ldd', controller.command[0]], stdout=subprocess.PIPE, text=True, check=True).stdout
        first = re.findall(r'=> (\S*/lib[au]san\.so\S*)', needed)
        controller.environment.update(RIG_FAULTS=name, LD_PRELOAD=' '.join([*first, library]))

    def clock_ahead(self, seconds):
        self.now.ahead_ms = round(seconds * 1000)

    def every_call_fails(self, error=errno.EIO):
        self.now.error = error

    def has_room(self, size, is_told):
        """On the history's disk; a quota tells nobody, and free bytes look as ever."""
        self.now.is_told, self.now.room = is_told, size

    def disk_is_well(self):
        self.now.error, self.now.is_told, self.now.room = 0, 0, NO_LIMIT

    def struck(self):
        return self.now.struck


class Line:
    """Leads to a port, whatever loopback address was asked for, and can be cut. What is on its way then waits: an end that gives
    its connection up takes it back, as TCP does."""

    WAYS = {'no connection': (), 'requests are lost': (0,), 'answers are lost': (1,), 'both are lost': (0, 1)}

    def __init__(self, to):
        self.to, self.held, self.is_refused, self.connections = to, (), False, set()
        self.listener, self.port = None, 0
        self.listen()

    def listen(self):
        self.listener = socket.create_server(('0.0.0.0', self.port), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def cut(self, way):
        self.held = self.WAYS[way]
        if not self.held:
            self.is_refused = True
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            for connection in list(self.connections):
                reset(connection)

    def mend(self):
        self.held = ()
        if self.is_refused:
            self.is_refused = False
            self.listen()

    def accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.lead, args=(near,), daemon=True).start()

    def lead(self, near):
        try:
            far = socket.create_connection((near.getsockname()[0], self.to), timeout=5)
            far.settimeout(None)
        except OSError:
            reset(near)
            return
        self.connections |= {near, far}
        back = threading.Thread(target=self.carry, args=(far, near, 1), daemon=True)
        back.start()
        self.carry(near, far, 0)
        back.join()
        self.connections -= {near, far}
        near.close()
        far.close()

    def carry(self, source, sink, way):
        try:
            while True:
                self.wait(source, way)
                told = source.recv(65536)
                if not told:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(told)
        except OSError:
            reset(source)
            reset(sink)

    def wait(self, source, way):
        """Until there is something to carry, and it may be."""
        poll = select.poll()
        poll.register(source, select.POLLIN)
        while True:
            found = poll.poll(50)
            if found and found[0][1] & select.POLLERR:
                raise ConnectionResetError
            if way in self.held:
                time.sleep(0.05)
            elif found:
                return


def reset(connection):
    """An end without a word; who waits in it wakes."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
