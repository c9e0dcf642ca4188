import { parseArgs } from 'node:util'
import { type BridgeOptions, startBridge } from './bridge.ts'
import { withoutPassword } from './connection.ts'
import { startRedis } from './redis.ts'

const USAGE = `Upstash's REST API in front of any Redis.

  npm run bridge -- [options]

  --redis URL      redis://127.0.0.1:6379; without it the bridge brings its own Redis.
                   For several repeat --redis URL=TOKEN, each with its own token
  --port N         default 8079; 0 takes a free one
  --token TEXT     default dev
  --allow-host NAME answer requests to this host name too, such as host.docker.internal; several: once
                   for each. Names of loopback are always answered
  --rtt MS         milliseconds added to each request, as if the database were far away; default 0
  --max-commands N throttles each database to N commands a second, those inside scripts too; the
                   others wait, as beyond a plan's 10,000
  --no-check-keys  run scripts bare: undeclared keys pass, commands inside scripts are not counted
  --help           this text`

type CliOptions = BridgeOptions & { redis: { url: string; token: string }[] }

/** A mistake on the command line. */
class UsageError extends Error {}

/** Parses the command line. @throws UsageError that says what is wrong. */
export function parseCli(args: string[]): CliOptions | 'help' {
  const values = read(args)
  if (values.help) return 'help'
  const port = wholeNumber('--port', values.port ?? '8079', 65_535)
  const rtt = wholeNumber('--rtt', values.rtt ?? '0', 60_000)
  const token = values.token ?? 'dev'
  if (!/^\S+$/.test(token)) throw new UsageError('--token: expected text without blanks')
  const allowHosts = values['allow-host'] ?? []
  for (const name of allowHosts) {
    if (/^([\w.-]+|\[[\da-f:.]+\])$/i.test(name)) continue
    const expected = 'a name without scheme and port like "host.docker.internal"'
    throw new UsageError(`--allow-host: expected ${expected}, got "${name}"`)
  }
  const checkKeys = !values['no-check-keys']
  const targets = (values.redis ?? []).map((text) => target(text, token))
  const tokens = new Set(targets.map((one) => one.token))
  if (tokens.size < targets.length) {
    throw new UsageError('--redis: several databases need a token each, as in URL=TOKEN')
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

/** Runs until Ctrl-C or until its own Redis ends. */
async function main(args: string[]): Promise<void> {
  try {
    const options = parseCli(args)
    if (options === 'help') return console.log(USAGE)
    await serve(options)
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    if (error instanceof UsageError) console.error(`\n${USAGE}`)
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
  // Printed after the handlers are set: a reader of these lines may end the process at once.
  if (own) console.error(`Redis: ${own.source} at ${own.url}`)
  for (const { url, token } of options.redis) {
    console.error(`Redis: ${withoutPassword(url)}, token ${token}`)
  }
  for (const token of Object.keys(bridge.stats())) {
    console.log(`UPSTASH_REDIS_REST_URL=${bridge.url}\nUPSTASH_REDIS_REST_TOKEN=${token}`)
  }
  own?.exited.then(async ({ lastLines }) => {
    if (stopping) return
    console.error(`Redis ended by itself:\n${lastLines}`)
    process.exitCode = 1
    await stop()
  })
}

if (import.meta.main) await main(process.argv.slice(2))
