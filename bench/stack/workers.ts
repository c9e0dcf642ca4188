/** Builds all Workers of a run once, into a temporary folder. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterDeath } from 'sluice-upstash-bridge'
import { build } from '../../dev/build.ts'
import type { FarRedis } from './bridge.ts'
import { type Quota, type VariantId, variants } from './variants.ts'
import { type Isolate, startIsolate } from './workerd.ts'

export interface Workers {
  /** Starts an isolate with a variant, whose Redis is behind a bridge. */
  start(
    id: VariantId,
    quotas: Quota[],
    far: Far,
    more?: object,
    options?: { inspect?: boolean },
  ): Promise<Isolate>
  /** Returns the folder of the modules and the variables, to start a variant in another way. */
  parts(id: VariantId, quotas: Quota[], far: Far, more?: object): [string, Record<string, string>]
  /** The source map of a variant. */
  mapOf(id: VariantId): string
  remove(): Promise<void>
}

/** A bridge. */
type Far = Pick<FarRedis, 'url' | 'token' | 'variables'>

/** @param binary the workerd binary */
export async function buildWorkers(binary: string): Promise<Workers> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'))
  const cancel = afterDeath('rm -rf "$1"', folder)
  const names = [...new Set(Object.values(variants).map(({ worker }) => worker))]
  await Promise.all(
    names.map((name) => build(join(folder, name), `bench/stack/workers/${name}.ts`)),
  )
  const parts: Workers['parts'] = (id, quotas, { url, token, variables }, more) => {
    const { worker, settings } = variants[id]
    const text = JSON.stringify({ ...settings(quotas), ...more })
    return [join(folder, worker), { ...variables, url, token, settings: text }]
  }
  return {
    parts,
    start: (id, quotas, far, more, options) =>
      startIsolate(...parts(id, quotas, far, more), binary, options),
    mapOf: (id) => join(folder, variants[id].worker, `${variants[id].worker}.js.map`),
    async remove() {
      await rm(folder, { recursive: true, force: true })
      cancel()
    },
  }
}
