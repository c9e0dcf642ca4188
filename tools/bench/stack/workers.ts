/** Builds all Workers of a run once, into a temporary folder. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterDeath } from 'sluice-upstash-bridge'
import { buildEntry } from '../../build.ts'
import { startWorker, type WorkerOptions } from '../../worker.ts'
import { memoryFolder, objectBinding } from '../object-binding.ts'
import type { FarRedis } from './bridge.ts'
import { type Quota, settingsOf, type VariantId, variants } from './variants.ts'
import { type Isolate, startIsolate } from './workerd.ts'

export interface Workers {
  /** Starts an isolate with a variant, whose Redis is behind a bridge. `more` adds to its settings. */
  start(id: VariantId, quotas: Quota[], far: Far, more?: object | undefined): Promise<Isolate>
  /** The folder of the modules of a variant. */
  outdir(id: VariantId): string
  remove(): Promise<void>
}

/** A bridge. */
type Far = Pick<FarRedis, 'url' | 'token'>

/** @param binary the workerd binary */
export async function buildWorkers(binary: string): Promise<Workers> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'))
  const cancel = afterDeath('rm -rf "$1"', folder)
  const names = [...new Set(Object.values(variants).map(({ worker }) => worker))]
  await Promise.all(
    names.map((name) => buildEntry(join(folder, name), `tools/bench/stack/workers/${name}.ts`)),
  )
  const outdir = (id: VariantId) => join(folder, variants[id].worker)
  return {
    outdir,
    start(id, quotas, { url, token }, more) {
      const { ratelimits, hasObjects } = variants[id]
      const env = {
        UPSTASH_REDIS_REST_URL: url,
        UPSTASH_REDIS_REST_TOKEN: token,
        settings: settingsOf(id, quotas, more),
      }
      if (!ratelimits && !hasObjects) return startIsolate(outdir(id), env, binary)
      if (ratelimits) return startInMiniflare(outdir(id), { env, ratelimits: ratelimits(quotas) })
      return startWithObjects(outdir(id), env)
    },
    async remove() {
      await rm(folder, { recursive: true, force: true })
      cancel()
    },
  }
}

async function startWithObjects(outdir: string, env: Record<string, string>): Promise<Isolate> {
  const persist = await memoryFolder('sluice-bench-objects-')
  const cancel = afterDeath('rm -rf "$1"', persist)
  const isolate = await startInMiniflare(outdir, { env, persist, more: objectBinding })
  return {
    ...isolate,
    async stop() {
      await isolate.stop()
      await rm(persist, { recursive: true, force: true })
      cancel()
    },
  }
}

async function startInMiniflare(outdir: string, options: WorkerOptions): Promise<Isolate> {
  const before = await children()
  const { directUrl, stop } = await startWorker(outdir, options)
  const pid = (await children()).find((child) => !before.includes(child))
  return { port: Number(new URL(directUrl).port), pid: Number(pid), stop }
}

/** The processes that this one started; none on systems without /proc. */
async function children(): Promise<string[]> {
  const list = `/proc/${process.pid}/task/${process.pid}/children`
  return (await readFile(list, 'utf8').catch(() => '')).split(' ').filter(Boolean)
}
