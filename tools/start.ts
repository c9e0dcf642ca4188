/** `npm start`: runs a Redis, the bridge, a demo origin, and the Worker in front of it, until Ctrl-C. */
import { fileURLToPath } from 'node:url'
import { dev } from '../cli/dev/dev.ts'
import { readScriptOptions } from '../cli/options.ts'
import { countsInObjects, STORE_OPTION } from '../cli/store.ts'

const usage = `Runs the Worker of this repository with everything that it needs, until Ctrl-C.

  npm start [-- --store durable-objects]

  --store  redis (the default), or durable-objects: then no Redis is started
  --help   show this text`

const options = readScriptOptions(STORE_OPTION, usage)
if (!options) process.exit()
const path = (file: string) => fileURLToPath(new URL(`../src/${file}`, import.meta.url))

await dev({
  command: 'npm start',
  program: {
    file: fileURLToPath(new URL('../cli/main.ts', import.meta.url)),
    project: fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, ''),
    check: 'npm run check',
    observe: path('features/observe/index.ts'),
    ...(countsInObjects(options.store) && { objects: path('stores/durable-objects/index.ts') }),
  },
})
