"""Runs commands of the AWS CLI without starting Python for each.

Loading the CLI takes five times as long as a command does, so this process loads it once and forks for each command. A child has the
arguments, the environment, the directory and the standard files of a command, and does what /usr/bin/aws does then: no command sees
another one's state.

It listens at its descriptor 3 and ends when its standard input does.
"""

import json
import os
import select
import signal
import socket
import sys

from awscli.clidriver import AWSCLIEntryPoint, create_clidriver


def run(connection):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, files, _, _ = socket.recv_fds(connection, 1 << 18, 3)
    command = json.loads(message)
    for standard, file in enumerate(files):
        os.dup2(file, standard)
        os.close(file)
    os.chdir(command["Dir"])
    os.environ.clear()
    os.environ.update(entry.split("=", 1) for entry in command["Env"])
    code = 70
    try:
        code = AWSCLIEntryPoint().main(command["Args"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        connection.send(str(code).encode())
        os._exit(0)


# What all commands would load: modules, and the models of services. Running a command here would start a thread, which the children would not have.
driver = create_clidriver()
driver.subcommand_table["gamelift"].subcommand_table
driver.session.get_component("endpoint_resolver")
loaded = driver.session.get_component("data_loader")
type(driver.session).__init__.__globals__["create_loader"] = lambda _: loaded

listener = socket.socket(fileno=3)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children that end leave nothing behind
while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
    connection, _ = listener.accept()
    if os.fork() == 0:
        listener.close()
        run(connection)
    connection.close()
