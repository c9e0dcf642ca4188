import { createClient } from 'redis'
import { startRedis } from 'sluice-upstash-bridge'

/** One EVALSHA. */
export interface Call {
  /** The text as its author wrote it. */
  script: string
  keys: string[]
  args: string[]
}

/** A Redis and what it tells of itself. */
export interface BenchServer {
  /** For people: `Redis 7.0.15`. */
  name: string
  /** Whether it may be emptied: a Redis of `REDIS_URL` is somebody's. */
  owned: boolean
  url: string
  send(...command: string[]): Promise<unknown>
  /** A script's reply. */
  call(call: Call): Promise<unknown>
  /** The same as a command to send. */
  toCommand(call: Call): Promise<string[]>
  /** Sends commands as fast as Redis takes them; rejects if one of them fails. */
  pour(commands: string[][]): Promise<void>
  /** Calls and µs of every command so far, those inside of scripts by themselves too. */
  commandStats(): Promise<Map<string, { calls: number; us: number }>>
  /** µs of the thread that runs the commands so far; `undefined` where the system does not tell. */
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
    // Stock Redis refuses Upstash's flag: the one line that is not run as its author wrote it.
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
