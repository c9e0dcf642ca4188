/** `sluice dev`: runs the Worker of the current folder with everything that it needs. */
import { realpathSync } from 'node:fs'
import type { Call } from './call.ts'
import { dev, portOf } from './dev/dev.ts'
import { readOptions } from './options.ts'
import { countsInObjects, STORE_OPTION } from './store.ts'

const usage = (
  title: string,
) => `Runs the Worker of this folder with a local Redis, a bridge that speaks
Upstash's REST API, and a demo origin. A configuration with durableObjects()
needs no Redis. Reloads when you edit sluice.config.ts, .dev.vars, the
configuration of wrangler or the source. Ctrl-C stops everything.

  ${title} [options]

  --port N  the port of the Worker (default that of PORT, or 8787)
  --store  redis, or durable-objects: counts without Redis, whatever the
           configuration says
  --help   show this text

Variables of the environment:

  PORT       the port of the Worker (default 8787)
  ORIGIN     your own origin, such as http://127.0.0.1:3000 (default the demo
             origin)
  REDIS_URL  a running Redis, such as redis://127.0.0.1:6379 (default a Redis of
             its own)
  UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN
             the database to use; no Redis is started

Exits with 0 after Ctrl-C, and with 1 if it cannot start, or if Redis or the
Worker ends.`

export async function main(args: string[], call: Call): Promise<void> {
  const options = readOptions(
    args,
    { ...STORE_OPTION, port: { type: 'string' } },
    usage(call.title),
    call,
  )
  if (!options) return
  const port = options.port === undefined ? undefined : portOf('--port', options.port)
  const project = realpathSync(process.cwd())
  const program = {
    file: call.file,
    project,
    check: 'npx sluice check',
    ...(countsInObjects(options.store) && { objects: 'sluice/durable-objects' }),
  }
  await dev({ command: call.title, program, port })
}
