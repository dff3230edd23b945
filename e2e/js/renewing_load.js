// A client with the SDK for JavaScript that calls the service by several profiles all the time; ../renewal_load_test.go has the same in Go, and says what the commands are.
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import {
  GameLiftClient, ListFleetsCommand, ListLocationsCommand, DescribeGameSessionQueuesCommand, DescribeMatchmakingConfigurationsCommand,
} from '@aws-sdk/client-gamelift';

const commands = [ListFleetsCommand, ListLocationsCommand, DescribeGameSessionQueuesCommand, DescribeMatchmakingConfigurationsCommand];
let opened = Promise.resolve(), open = () => {};
let inside = 0;

class Renewing {
  constructor(profile) {
    this.api = new GameLiftClient({ profile, maxAttempts: 1 });
    this.report = { Profile: profile, Calls: 0, Keys: 0, Problems: [], First: '' };
    this.keys = new Set();
  }

  async load(n) {
    for (;; n++) {
      await opened;
      inside++;
      await this.call(n);
      inside--;
      await pause(5);
    }
  }

  async call(n) {
    try {
      await this.api.send(new commands[n % commands.length]({}));
      const c = await this.api.config.credentials();
      this.first ??= c;
      this.keys.add(c.accessKeyId);
      Object.assign(this.report, { Calls: this.report.Calls + 1, Keys: this.keys.size, Expires: c.expiration.toISOString() });
    } catch (e) {
      this.report.Problems.push(new Date().toISOString() + ' ' + e);
    }
  }

  async tryFirst() {
    const { accessKeyId, secretAccessKey, sessionToken } = this.first;
    try {
      await new GameLiftClient({ profile: this.report.Profile, maxAttempts: 1, credentials: { accessKeyId, secretAccessKey, sessionToken } }).send(new ListFleetsCommand({}));
    } catch (e) {
      this.report.First = String(e);
    }
  }
}

const clients = process.argv[2].split(',').map((profile) => new Renewing(profile));
for (const client of clients) {
  await client.call(0);
  for (let n = 0; n < 4; n++) client.load(n);
}
for await (const command of createInterface({ input: process.stdin })) {
  if (command === 'hold') {
    opened = new Promise((done) => { open = done; });
    while (inside > 0) await pause(1);
  } else if (command === 'go') {
    open();
  } else if (command === 'first') {
    await Promise.all(clients.map((client) => client.tryFirst()));
  }
  console.log(JSON.stringify(clients.map((client) => client.report)));
}
process.exit(0);
