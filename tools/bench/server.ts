import { createClient } from 'redis'
import { startRedis } from 'sluice-upstash-bridge'

/** One EVALSHA. */
export interface Call {
  /** The original text of the script. */
  script: string
  keys: string[]
  args: string[]
}

/** A Redis for benchmarks, with its statistics. */
export interface BenchServer {
  /** Description for reports, such as `Redis 7.0.15`. */
  name: string
  /** True if this process started the Redis and may empty it; false for `REDIS_URL`. */
  owned: boolean
  url: string
  send(...command: string[]): Promise<unknown>
  /** Runs a script and returns its reply. */
  call(call: Call): Promise<unknown>
  /** The command that runs a script. */
  toCommand(call: Call): Promise<string[]>
  /** Sends commands as fast as Redis accepts them. Rejects if one of them fails. */
  pour(commands: string[][]): Promise<void>
  /** Calls and µs of each command so far. Commands inside scripts are counted separately. */
  commandStats(): Promise<Map<string, { calls: number; us: number }>>
  /** CPU time in µs of the main thread so far; `undefined` if the system does not report it. */
  cpu(): Promise<number | undefined>
  stop(): Promise<void>
}

const CONNECTIONS = 4
const PIPELINE = 32

export async function openServer(): Promise<BenchServer> {
  const redis = await startRedis({ log: console.error })
  const clients = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => createClient({ url: redis.url }).connect()),
  )
  const shas = new Map<string, Promise<string>>()
  const send = (...command: string[]) => clients[0]!.sendCommand<unknown>(command)
  const info = async (section: string) => String(await send('INFO', section))
  const about = await info('server')

  async function load(script: string): Promise<string> {
    // Removes the shebang with Upstash's flag, which stock Redis refuses. The rest of the script is unchanged.
    return String(await send('SCRIPT', 'LOAD', script.replace(/^#!lua[^\n]*\n/, '')))
  }

  async function toCommand({ script, keys, args }: Call): Promise<string[]> {
    if (!shas.has(script)) shas.set(script, load(script))
    return ['EVALSHA', (await shas.get(script))!, `${keys.length}`, ...keys, ...args]
  }

  return {
    name: nameOf(about),
    owned: redis.owned,
    url: redis.url,
    send,
    call: async (call) => send(...(await toCommand(call))),
    toCommand,
    async pour(commands) {
      let next = 0
      const drain = async (client: (typeof clients)[number]) => {
        while (next < commands.length) {
          const batch = commands.slice(next, next + PIPELINE)
          next += PIPELINE
          await Promise.all(batch.map((command) => client.sendCommand(command)))
        }
      }
      await Promise.all(clients.map(drain))
    },
    async commandStats() {
      const lines = (await info('commandstats')).matchAll(
        /^cmdstat_(\S+?):calls=(\d+),usec=(\d+)/gm,
      )
      return new Map(
        [...lines].map(([, name, calls, us]) => [name!, { calls: Number(calls), us: Number(us) }]),
      )
    },
    async cpu() {
      const parts = [...(await info('cpu')).matchAll(/^used_cpu_\w+_main_thread:([\d.]+)/gm)]
      return parts.length > 0
        ? parts.reduce((sum, [, seconds]) => sum + Number(seconds) * 1e6, 0)
        : undefined
    },
    async stop() {
      for (const client of clients) client.destroy()
      await redis.stop()
    },
  }
}

function nameOf(info: string): string {
  const version = (field: string) => new RegExp(`^${field}:(\\S+)`, 'm').exec(info)?.[1]
  const valkey = version('valkey_version')
  return valkey ? `Valkey ${valkey}` : `Redis ${version('redis_version')}`
}
