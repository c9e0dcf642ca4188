import type { RequestListener } from 'node:http'
import type { BuiltModules } from '../../tools/build.ts'
import type { MoreBindings } from '../project/bindings.ts'
import type { Miniflare } from '../project/tools.ts'

/** The name of the Worker in Miniflare. */
export const WORKER_NAME = 'sluice'

type Namespace = Promise<{
  put(key: string, value: string): Promise<void>
  delete(key: string): Promise<void>
}>

export interface RunningWorker {
  url: string
  /** The URL without Miniflare's entry Worker, which normalizes requests. Requests arrive unchanged. */
  directUrl: string
  /** The log of the Worker so far. */
  logs: string[]
  /** Returns a KV namespace of the option `kv`. */
  kv(binding: string): Namespace
  stop(): Promise<void>
}

export interface WorkerOptions {
  /** Variables and secrets. A value that is not a text becomes a JSON binding. */
  env?: Record<string, unknown>
  /** The bindings of empty KV namespaces, or the ids of namespaces by binding. */
  kv?: string[] | Record<string, string>
  /** The folder for persistent resources. Defaults to memory. */
  persist?: string
  /** Rate limits of Cloudflare, by binding. `period` is in seconds. */
  ratelimits?: Record<string, { limit: number; period: 10 | 60 }>
  /** More bindings. Defaults to none. */
  more?: MoreBindings
  /** Defaults to a free port. */
  port?: number
  /** Receives the log of the Worker. Defaults to collecting it in `logs`. */
  onLog?: (message: string) => void
  /** Responds to the fetches of the Worker. Defaults to the network. */
  outbound?: (request: Request) => Response | Promise<Response>
  /** Responds to them as a server of Node, which gets the path that the Worker has sent. A `Request` would have it resolved. */
  origin?: RequestListener
}

/** The program that runs the Worker, and how the runtime behaves. */
export interface Runtime {
  miniflare: Miniflare
  compatibilityDate: string
  compatibilityFlags?: string[]
}

/** Runs a Worker in workerd. Its fetches use the network, so that redirects, resets and upgrades behave as in production. */
export async function runWorkerd(
  { miniflare: { Log, LogLevel, Miniflare }, compatibilityDate, compatibilityFlags }: Runtime,
  { mainModule, modules }: BuiltModules,
  options: WorkerOptions,
): Promise<RunningWorker> {
  const logs: string[] = []
  const env = Object.fromEntries(
    Object.entries(options.env ?? {}).map(([name, value]) => [
      name,
      { type: typeof value === 'string' ? 'text' : 'json', value },
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
          name: WORKER_NAME,
          compatibilityDate,
          ...(compatibilityFlags && { compatibilityFlags }),
          manifest: { mainModule, modules },
          ...options.more?.config,
          env: { ...env, ...namespaces, ...ratelimits, ...options.more?.bindings },
        },
        dev: {
          unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
          ...(options.origin && {
            outboundService: { type: 'node-handler', handler: options.origin },
          }),
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
