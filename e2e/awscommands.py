"""Runs commands of the AWS CLI without starting Python for each.

Reads a command's arguments from each line of the standard input, as a JSON array, and writes its outcome. Loading the CLI takes twenty
times as long as a command does, so this process loads it once and forks for each command. A child does what /usr/bin/aws does then, and
no command sees another one's state.
"""

import json
import os
import sys

from awscli.clidriver import AWSCLIEntryPoint, create_clidriver


def outcome(driver, args):
    outputs = [os.memfd_create(name) for name in ("stdout", "stderr")]
    child = os.fork()
    if child == 0:
        code = 70
        try:
            for standard, output in zip((1, 2), outputs):
                os.dup2(output, standard)
            code = AWSCLIEntryPoint(driver).main(args)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    texts = []
    for output in outputs:
        with os.fdopen(output, "rb") as file:
            file.seek(0)
            texts.append(file.read().decode())
    return {"code": os.waitstatus_to_exitcode(status), "stdout": texts[0], "stderr": texts[1]}


driver = create_clidriver()
# What all commands would load. Running a command here would start a thread, which the children would not have.
driver.subcommand_table["gamelift"].subcommand_table
driver.session.get_component("endpoint_resolver")
for line in sys.stdin:
    print(json.dumps(outcome(driver, json.loads(line))), flush=True)
