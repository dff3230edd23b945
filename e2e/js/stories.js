// Tells the stories of ../stories, all side by side; stories_test.go says what is in them.

import { readdirSync, readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { call, start, step, until, url } from './client.js';

const directory = new URL('../stories/', import.meta.url);

// member is what a path names: a list on the way stands for its first element, .length is how many it has.
function member(answer, path) {
  const names = path.split('.');
  if (names.at(-1) === 'length') return (member(answer, names.slice(0, -1).join('.')) ?? []).length;
  return names.reduce((at, name) => (Array.isArray(at) ? at[0] : at)?.[name], answer);
}

async function tell(name) {
  const saved = {};
  const fill = (text) => text.replace(/\$[A-Za-z]+/g, (word) => saved[word.slice(1)] ?? word);
  // judge returns the answer when it is the wanted one.
  const judge = async ({ with: input = {}, want = {}, error: code = '', names = '' }, operation) => {
    let answer;
    let error;
    try {
      answer = await call(operation, JSON.parse(fill(JSON.stringify(input))));
    } catch (e) {
      error = e;
    }
    assert.equal(error?.name ?? '', code, error?.message);
    assert((error?.message ?? '').includes(fill(names)), `the message "${error?.message}" does not name ${names}`);
    for (const [path, value] of Object.entries(want)) {
      assert.equal(member(answer, path), typeof value === 'string' ? fill(value) : value, path);
    }
    return answer;
  };
  for (const [i, one] of JSON.parse(readFileSync(new URL(name, directory))).entries()) {
    const what = `${name} ${i + 1}: ${one.call ?? one.until ?? 'a game server starts'}${one.error ? ` refuses: ${one.error}` : ''}`;
    const ok = await step(what, async () => {
      if (one.server) {
        const { fleet, compute, token } = one.server;
        start(process.env.ARENA_SERVER, [
          `-authtoken=${fill(token)}`, `-hostid=${compute}`, `-fleetid=${fill(fleet)}`, `-websocketurl=${url.replace('http', 'ws')}`,
          '-port', '0', '-bind', '127.0.0.1',
        ], { HEALTHCHECK_INTERVAL: '1s', HEALTHCHECK_MAX_JITTER: '1ms' });
        return true;
      }
      let wrong;
      const answer = one.call ? await judge(one, one.call) : await until(what, () => judge(one, one.until).catch((e) => { wrong = e; }))
        .catch((e) => { throw wrong ?? e; });
      for (const [key, path] of Object.entries(one.save ?? {})) {
        assert(saved[key] = member(answer, path), `the answer has no ${path}`);
      }
      return true;
    });
    if (!ok) return; // what follows builds on it
  }
}

export const tellStories = () => Promise.all(readdirSync(directory).filter((name) => name.endsWith('.json')).map(tell));
