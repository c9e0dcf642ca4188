import { miniflareOf, wranglerOf } from './tools.ts'
import { wranglerFile } from './wrangler-config.ts'

/** Bindings and exported classes of a Worker, in the form of Miniflare 5. Plain data. */
export interface MoreBindings {
  bindings: Record<string, { type: string }>
  exports: Record<string, object>
}

/** The part of Miniflare that converts the options that wrangler makes. */
interface Converter {
  convertV4MiniflareOptions(options: object): {
    workers: {
      config: { env?: MoreBindings['bindings']; exports?: MoreBindings['exports'] }
    }[]
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
  const { env = {}, exports = {} } = workers[0]!.config
  const known = Object.entries(env).filter(([, { type }]) => TYPES.includes(type))
  return { bindings: Object.fromEntries(known), exports }
}
