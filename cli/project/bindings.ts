import { miniflareOf, wranglerOf } from './tools.ts'
import { wranglerFile } from './wrangler-config.ts'

/** Bindings and other settings of a Worker, in the form of Miniflare 5. Plain data. */
export interface MoreBindings {
  bindings: Record<string, { type: string }>
  config: {
    /** Classes of Durable Objects. */
    exports?: Record<string, object>
    /** Queues whose messages the Worker gets. */
    triggers?: { type: string }[]
    /** Static files. */
    assets?: object
  }
}

/** The part of Miniflare that converts the options that wrangler makes. */
interface Converter {
  convertV4MiniflareOptions(options: object): {
    workers: { config: MoreBindings['config'] & { env?: MoreBindings['bindings'] } }[]
  }
}

/** The types of the bindings that `PROVIDED` of wrangler-config.ts names. */
const TYPES = [
  'd1',
  'r2',
  'durable-object',
  'queue',
  'analytics-engine-dataset',
  'hyperdrive',
  'version-metadata',
  'assets',
]

/**
 * The bindings of a project to products that Miniflare runs on this machine.
 * @param name the name of the Worker, to which its Durable Objects belong
 */
export async function moreBindings(project: string, name: string): Promise<MoreBindings> {
  const [wrangler, miniflare] = await Promise.all([wranglerOf(project), miniflareOf(project)])
  process.env.WRANGLER_LOG ??= 'error'
  const { workerOptions } = wrangler.unstable_getMiniflareWorkerOptions(wranglerFile(project))
  const code = {
    modules: [{ type: 'ESModule', path: '/worker.js', contents: '' }],
    modulesRoot: '/',
  }
  const { workers } = (miniflare as unknown as Converter).convertV4MiniflareOptions({
    workers: [{ ...workerOptions, ...code, name }],
  })
  const { env = {}, exports, triggers = [], assets } = workers[0]!.config
  const known = Object.entries(env).filter(([, { type }]) => TYPES.includes(type))
  return {
    bindings: Object.fromEntries(known),
    config: {
      ...(exports && { exports }),
      triggers: triggers.filter(({ type }) => type === 'queue'),
      ...(assets && { assets }),
    },
  }
}
