// Every operation that Muster serves, and its main errors: the walk-through and the stories, side by side on one service. Prints
// a line for each step, and at the end what was called; the exit status is 0 when all went as they should.

import { calls, failures, killPrograms } from './client.js';
import { tellStories } from './stories.js';

await Promise.all([import('./walkthrough.js'), tellStories()]);
killPrograms();
console.log(`CALLS ${JSON.stringify(calls)}`);
console.log(failures === 0 ? 'all went as they should' : `${failures} steps failed`);
process.exit(failures === 0 ? 0 : 1);
