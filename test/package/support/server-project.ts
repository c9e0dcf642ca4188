import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { freePort, startBridge, startRedis } from 'sluice-upstash-bridge'
import { expect, onTestFinished } from 'vitest'
import type { Consumer, StartedProgram } from './consumer.ts'
import { expectOneRefusal } from './eleven.ts'

/**
 * The source of a Hono app with a limit of ten.
 * @param clientAddress the setting, as code
 * @param serve the last line, which starts the server
 */
export const honoApp = (clientAddress: string, serve: string, imports = '') =>
  `${imports}import { Hono } from 'hono'
import { rateLimiter } from 'sluice'

const app = new Hono()
app.use(
  rateLimiter({
    clientAddress: ${clientAddress},
    deadline: '10s',
    policies: [{ name: 'ten', limit: 10, window: '1m', onMissingKey: 'refuse' }],
  }),
)
app.get('/', (c) => c.text(\`\${c.var.rateLimit.limits[0]?.remaining} left\`))
${serve}
`

/** The setting for a server behind a proxy on this machine, as code. */
export const LOCAL_PROXY = "{ forwardedFor: { trustedProxies: ['127.0.0.0/8'] } }"

/** How long a server may take until it listens. */
const START_MS = 60_000

/**
 * Starts a server of a project, and expects its eleventh request to be refused. The server listens on the port of the variable `PORT`.
 * @param command a program of the project's node_modules/.bin, and its arguments
 * @param headers of the requests
 * @returns a function that sends one more request
 */
export async function expectLimitedServer(
  { start }: Consumer,
  [name, ...args]: [string, ...string[]],
  headers: Record<string, string> = {},
): Promise<(headers: Record<string, string>) => Promise<Response>> {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const bridge = await startBridge({ redis: redis.url, token: 'a-local-token' })
  onTestFinished(() => bridge.close())
  const port = await freePort()
  const server = start(name, args, {
    PORT: String(port),
    UPSTASH_REDIS_REST_URL: bridge.url,
    UPSTASH_REDIS_REST_TOKEN: bridge.token,
  })
  await listening(port, server)
  const send = (fields: Record<string, string>) =>
    fetch(`http://127.0.0.1:${port}/`, { headers: fields })
  await expectOneRefusal(() => send(headers))
  expect(bridge.stats()[bridge.token]!.http).toBeGreaterThanOrEqual(11)
  return send
}

/** Waits until a server accepts connections. Sends no request. */
async function listening(port: number, { exited }: StartedProgram): Promise<void> {
  const deadline = Date.now() + START_MS
  while (Date.now() < deadline) {
    const socket = connect(port, '127.0.0.1')
    const connected = once(socket, 'connect').then(
      () => true,
      () => setTimeout(100, false),
    )
    const ready = await Promise.race([connected, exited]).finally(() => socket.destroy())
    if (ready) return
  }
  throw new Error(`The server does not listen after ${START_MS / 1000} s.`)
}
