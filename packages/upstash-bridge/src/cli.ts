import { parseArgs } from 'node:util'
import { type BridgeOptions, startBridge } from './bridge.ts'
import { withoutPassword } from './connection.ts'
import { startRedis } from './redis.ts'

const usage = (command: string) => `Serves the Upstash REST API from any Redis.

  ${command} [options]

  --redis URL        the Redis to use, such as redis://127.0.0.1:6379. Without this option the
                     bridge starts its own Redis. For several databases repeat --redis URL=TOKEN
  --port N           the port to listen on; 0 selects a free port (default 8079)
  --token TEXT       the token that clients must send (default dev)
  --allow-host NAME  also accept requests to this host name, such as host.docker.internal;
                     repeatable. Loopback names are always accepted
  --rtt MS           latency added to each request, to simulate a distant database (default 0)
  --max-commands N   throttle each database to N commands a second, including the commands inside
                     scripts; further commands wait. An Upstash plan allows 10,000
  --no-check-keys    run scripts unchanged: undeclared keys are not refused, and commands inside
                     scripts are not counted
  --help             show this text`

type CliOptions = BridgeOptions & { redis: { url: string; token: string }[] }

/** An invalid command line. */
class UsageError extends Error {}

/** Parses the command line. @throws UsageError */
export function parseCli(args: string[]): CliOptions | 'help' {
  const values = read(args)
  if (values.help) return 'help'
  const port = wholeNumber('--port', values.port ?? '8079', 65_535)
  const rtt = wholeNumber('--rtt', values.rtt ?? '0', 60_000)
  const token = values.token ?? 'dev'
  if (!/^\S+$/.test(token)) throw new UsageError('--token: expected text without spaces')
  const allowHosts = values['allow-host'] ?? []
  for (const name of allowHosts) {
    if (/^([\w.-]+|\[[\da-f:.]+\])$/i.test(name)) continue
    const expected = 'a host name without scheme and port, such as "host.docker.internal"'
    throw new UsageError(`--allow-host: expected ${expected}, got "${name}"`)
  }
  const checkKeys = !values['no-check-keys']
  const targets = (values.redis ?? []).map((text) => target(text, token))
  const tokens = new Set(targets.map((one) => one.token))
  if (tokens.size < targets.length) {
    throw new UsageError('--redis: each of several databases needs its own token; write URL=TOKEN')
  }
  const maxCommands = maxOf(values['max-commands'])
  return { redis: targets, port, token, rtt, allowHosts, checkKeys, maxCommands }
}

function read(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        redis: { type: 'string', multiple: true },
        port: { type: 'string' },
        token: { type: 'string' },
        'allow-host': { type: 'string', multiple: true },
        rtt: { type: 'string' },
        'max-commands': { type: 'string' },
        'no-check-keys': { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function target(text: string, token: string): { url: string; token: string } {
  const [, url = text, own = token] = /^([^=]*)=(.+)$/.exec(text) ?? []
  if (!/^(rediss?:\/\/[^/]|unix:\/)/.test(url) || !URL.canParse(url)) {
    throw new UsageError(`--redis: expected redis://host:port, got "${text}"`)
  }
  return { url, token: own }
}

function wholeNumber(flag: string, text: string, max: number): number {
  if (/^\d{1,6}$/.test(text) && Number(text) <= max) return Number(text)
  throw new UsageError(`${flag}: expected a whole number from 0 to ${max}, got "${text}"`)
}

function maxOf(text: string | undefined): number | undefined {
  if (text === undefined || /^[1-9]\d{0,5}$/.test(text))
    return text === undefined ? text : Number(text)
  throw new UsageError(`--max-commands: expected a whole number from 1 to 999999, got "${text}"`)
}

/**
 * Runs until Ctrl-C, or until the Redis that it started ends.
 * @param command how the user calls this program, for the usage
 * @param onUsageError prints a mistake on the command line; defaults to the message and the usage
 */
export async function main(
  args: string[],
  command = 'npm run bridge --',
  onUsageError = (message: string) => console.error(`${message}\n\n${usage(command)}`),
): Promise<void> {
  try {
    const options = parseCli(args)
    if (options === 'help') return console.log(usage(command))
    await serve(options)
  } catch (error) {
    if (error instanceof UsageError) onUsageError(error.message)
    else console.error(error instanceof Error ? error.message : String(error))
    process.exitCode = 1
  }
}

async function serve(options: CliOptions): Promise<void> {
  const own = options.redis.length > 0 ? undefined : await startRedis({ log: console.error })
  const redis = own ? own.url : options.redis
  const bridge = await startBridge({ ...options, redis }).catch(async (error) => {
    await own?.stop()
    throw error
  })
  let stopping = false
  const stop = async () => {
    if (stopping) process.exit(1) // a second Ctrl-C
    stopping = true
    await bridge.close()
    await own?.stop()
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  // Set the signal handlers before printing: a program that reads these lines may stop this process at once.
  if (own) console.error(`Redis: ${own.source} at ${own.url}`)
  for (const { url, token } of options.redis) {
    console.error(`Redis: ${withoutPassword(url)}, token ${token}`)
  }
  for (const token of Object.keys(bridge.stats())) {
    console.log(`UPSTASH_REDIS_REST_URL=${bridge.url}\nUPSTASH_REDIS_REST_TOKEN=${token}`)
  }
  own?.exited.then(async ({ lastLines }) => {
    if (stopping) return
    console.error(`Redis ended unexpectedly. Its last output:\n${lastLines}`)
    process.exitCode = 1
    await stop()
  })
}
