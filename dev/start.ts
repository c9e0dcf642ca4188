/** `npm start`: runs a Redis, the bridge, a demo origin, and the Worker in front of it, until Ctrl-C. */
import { fileURLToPath } from 'node:url'
import { dev } from '../cli/dev/dev.ts'

await dev({
  command: 'npm start',
  program: {
    file: fileURLToPath(new URL('../cli/main.ts', import.meta.url)),
    project: fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, ''),
    check: 'npm run check',
    observe: fileURLToPath(new URL('../src/features/observe/index.ts', import.meta.url)),
  },
})
