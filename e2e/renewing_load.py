# A client with botocore that calls the service by several profiles all the time; renewal_load_test.go has the same in Go, and says what the commands are.
import json, sys, threading, time
from datetime import datetime

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

CALLS = ['list_fleets', 'list_locations', 'describe_game_session_queues', 'describe_matchmaking_configurations']


class Gate:
    """Is closed while no call may be under way."""

    def __init__(self):
        self.changed, self.closed, self.inside = threading.Condition(), False, 0

    def __enter__(self):
        with self.changed:
            self.changed.wait_for(lambda: not self.closed)
            self.inside += 1

    def __exit__(self, *_):
        with self.changed:
            self.inside -= 1
            self.changed.notify_all()

    def close(self):
        with self.changed:
            self.closed = True
            self.changed.wait_for(lambda: self.inside == 0)

    def open(self):
        with self.changed:
            self.closed = False
            self.changed.notify_all()


class Renewing:
    def __init__(self, profile):
        self.profile, self.lock, self.keys, self.calls, self.problems, self.first_answer = profile, threading.Lock(), set(), 0, [], ''
        self.session = botocore.session.Session(profile=profile)
        self.credentials = self.session.get_credentials()
        self.first = self.credentials.get_frozen_credentials()
        self.once = Config(retries={'total_max_attempts': 1})
        self.api = self.session.create_client('gamelift', config=self.once)

    def call(self, n):
        try:
            getattr(self.api, CALLS[n % len(CALLS)])()
            key = self.credentials.get_frozen_credentials().access_key
        except Exception as e:
            with self.lock:
                self.problems.append(datetime.now().isoformat() + ' ' + str(e))
            return
        with self.lock:
            self.calls += 1
            self.keys.add(key)

    def try_first(self):
        f = self.first
        api = botocore.session.Session(profile=self.profile).create_client(
            'gamelift', config=self.once, aws_access_key_id=f.access_key, aws_secret_access_key=f.secret_key, aws_session_token=f.token)
        try:
            api.list_fleets()
        except ClientError as e:
            self.first_answer = str(e)

    def report(self):
        with self.lock:
            return {'Profile': self.profile, 'Calls': self.calls, 'Keys': len(self.keys), 'Expires': self.credentials._expiry_time.isoformat(),
                    'Problems': self.problems[:20], 'First': self.first_answer}


gate = Gate()
clients = [Renewing(profile) for profile in sys.argv[1].split(',')]


def load(client, n):
    while True:
        with gate:
            client.call(n)
        n += 1
        time.sleep(0.01)


for client in clients:
    for n in range(4):
        threading.Thread(target=load, args=(client, n), daemon=True).start()
for line in sys.stdin:
    command = line.strip()
    if command == 'hold':
        gate.close()
    elif command == 'go':
        gate.open()
    elif command == 'first':
        for client in clients:
            client.try_first()
    print(json.dumps([client.report() for client in clients]), flush=True)
