import { Log, LogLevel, Miniflare } from 'miniflare'
import { type BuiltModules, compatibilityDate, readModules } from './build.ts'

type Namespace = Promise<{
  put(key: string, value: string): Promise<void>
  delete(key: string): Promise<void>
}>

export interface RunningWorker {
  url: string
  /** The same without Miniflare's entry, which tidies requests: what a client sends arrives to the letter. */
  directUrl: string
  /** Everything the Worker logged so far. */
  logs: string[]
  /** A KV namespace of `kv`. */
  kv(binding: string): Namespace
  stop(): Promise<void>
}

export interface WorkerOptions {
  /** Variables and secrets. */
  env?: Record<string, string>
  /** Bindings of KV namespaces, each empty; or the ids of namespaces by binding. */
  kv?: string[] | Record<string, string>
  /** Where resources are kept; in memory by default. */
  persist?: string
  /** Rate limits of Cloudflare's own, by binding: so many in so many seconds. */
  ratelimits?: Record<string, { limit: number; period: 10 | 60 }>
  /** Defaults to a free one. */
  port?: number
  /** Takes what the Worker logs, instead of `logs`. */
  onLog?: (message: string) => void
  /** Answers what the Worker fetches, instead of the network. */
  outbound?: (request: Request) => Response | Promise<Response>
}

/**
 * Runs a built Worker (its modules, or the folder that they are in) in workerd, its own fetches on the real network (redirects, resets and upgrades are as in production).
 */
export async function startWorker(
  built: string | BuiltModules,
  options: WorkerOptions = {},
): Promise<RunningWorker> {
  const logs: string[] = []
  const { mainModule, modules } = typeof built === 'string' ? await readModules(built) : built
  const env = Object.fromEntries(
    Object.entries(options.env ?? {}).map(([name, value]) => [
      name,
      { type: 'text' as const, value },
    ]),
  )
  const namespaces = Object.fromEntries(
    namespacesOf(options.kv).map(([name, id]) => [name, { type: 'kv', id }]),
  )
  const ratelimits = Object.fromEntries(
    Object.entries(options.ratelimits ?? {}).map(([name, simple]) => [
      name,
      { type: 'rate-limit', namespace: name, simple },
    ]),
  )
  const miniflare = new Miniflare({
    host: '127.0.0.1',
    port: options.port ?? 0,
    log: new Log(LogLevel.NONE),
    handleStructuredLogs: ({ message }: { message: string }) =>
      options.onLog ? options.onLog(message) : void logs.push(message),
    ...(options.persist && { resourcePersistencePath: options.persist }),
    workers: [
      {
        config: {
          name: 'sluice',
          compatibilityDate,
          manifest: { mainModule, modules },
          env: { ...env, ...namespaces, ...ratelimits },
        },
        dev: {
          unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
          ...(options.outbound && {
            outboundService: { type: 'fetcher', handler: options.outbound },
          }),
        },
      },
    ],
  } as unknown as ConstructorParameters<typeof Miniflare>[0])
  const url = (await miniflare.ready).origin
  const directUrl = (await miniflare.unsafeGetDirectURL()).origin
  const kv = (binding: string) => miniflare.getKVNamespace(binding) as unknown as Namespace
  return { url, directUrl, logs, kv, stop: () => miniflare.dispose() }
}

const namespacesOf = (kv: WorkerOptions['kv'] = []): [name: string, id: string][] =>
  Array.isArray(kv) ? kv.map((name) => [name, name]) : Object.entries(kv)
