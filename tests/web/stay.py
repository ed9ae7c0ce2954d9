"""Asks again and again over one connection: stay.py PORT AUTHORITY TOKEN_FILE STOP_FILE."""
import http.client
import os
import ssl
import sys
import time

port, authority, token, stop = sys.argv[1:]
with open(token, encoding="utf-8") as file:
    headers = {"Authorization": "Bearer " + file.read().strip()}
connection = http.client.HTTPSConnection("127.0.0.1", int(port), timeout=60,
                                         context=ssl.create_default_context(cafile=authority))
connection.connect()
socket = connection.sock
while not os.path.exists(stop):
    connection.request("GET", "/api/v1", headers=headers)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200, answer.status
    assert connection.sock is socket, "another connection"
    time.sleep(0.2)
print("one connection")
