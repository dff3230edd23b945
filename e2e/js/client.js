// What the tests with the AWS SDK for JavaScript share: a client that counts what it calls, steps that go on after a failure,
// and programs that they start. The service is at MUSTER_URL.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import assert from 'node:assert/strict';
import * as gl from '@aws-sdk/client-gamelift';

export const url = process.env.MUSTER_URL;
export const options = {
  endpoint: url,
  region: 'us-east-1',
  credentials: { accessKeyId: 'any', secretAccessKey: 'any' },
  maxAttempts: 1,
};
export const client = new gl.GameLiftClient(options);

// calls are the outcomes by operation: '' for an answer, else the error's name.
export const calls = {};
client.middlewareStack.add((next, context) => async (args) => {
  const outcomes = (calls[context.commandName.replace(/Command$/, '')] ??= {});
  try {
    const result = await next(args);
    outcomes[''] = true;
    return result;
  } catch (error) {
    outcomes[error.name] = true;
    throw error;
  }
}, { step: 'initialize' });

export let failures = 0;

// step runs one part and goes on after a failure, so that one run shows them all.
export async function step(name, run) {
  try {
    const result = await run();
    console.log(`ok    ${name}`);
    return result;
  } catch (error) {
    failures++;
    console.log(`FAIL  ${name}: ${error.name}: ${error.message}`);
    return undefined;
  }
}

// call sends an operation by its name.
export function call(operation, input = {}) {
  return client.send(new gl[`${operation}Command`](input));
}

// refused expects an error of this type, with a message that names all the parts.
export async function refused(type, operation, input, ...parts) {
  await step(`${operation} refuses: ${type}`, async () => {
    let error;
    try {
      await call(operation, input);
    } catch (e) {
      error = e;
    }
    assert(error, 'it succeeded');
    assert.equal(error.name, type, `got ${error.name}: ${error.message}`);
    assert(error instanceof gl.GameLiftServiceException, 'the SDK does not know this error');
    for (const part of parts) {
      assert(error.message.includes(part), `the message "${error.message}" does not name ${part}`);
    }
    assert.match(error.$metadata.requestId ?? '', /^[0-9a-f-]{36}$/);
  });
}

export async function until(what, check) {
  for (const end = Date.now() + 120_000; Date.now() < end; await sleep(20)) {
    const value = await check();
    if (value) return value;
  }
  throw new Error(`waited in vain for ${what}`);
}

const programs = [];

export function killPrograms() {
  for (const child of programs) child.kill('SIGKILL');
}

// start starts a program and gives a function that waits for a line with a certain part.
export function start(binary, args, env = {}) {
  const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } });
  programs.push(child);
  const seen = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => seen.push(line));
  }
  const exit = once(child, 'exit');
  let over = false; // and all that it has printed was seen
  child.once('close', () => { over = true; });
  return {
    child,
    exit,
    line: (part) => until(`a line with "${part}" of ${binary}`, () => {
      const found = seen.find((line) => line.includes(part));
      if (!found && over) throw new Error(`${binary} exited:\n${seen.join('\n')}`);
      return found;
    }),
  };
}
