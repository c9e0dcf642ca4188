/** The Workers, built once for a run into a folder of its own. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterDeath } from 'sluice-upstash-bridge'
import { build } from '../../dev/build.ts'
import type { FarRedis } from './bridge.ts'
import { type Quota, type VariantId, variants } from './variants.ts'
import { type Isolate, startIsolate } from './workerd.ts'

export interface Workers {
  /** An isolate with a variant in it, whose Redis is behind a bridge. */
  start(
    id: VariantId,
    quotas: Quota[],
    far: Far,
    more?: object,
    options?: { inspect?: boolean },
  ): Promise<Isolate>
  /** What it takes to start one otherwise: the folder of its modules, and its variables. */
  parts(id: VariantId, quotas: Quota[], far: Far, more?: object): [string, Record<string, string>]
  /** The file that tells of which source a variant is made. */
  mapOf(id: VariantId): string
  remove(): Promise<void>
}

/** A bridge. */
type Far = Pick<FarRedis, 'url' | 'token' | 'variables'>

/** @param binary the workerd that runs them */
export async function buildWorkers(binary: string): Promise<Workers> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'))
  const callOff = afterDeath('rm -rf "$1"', folder)
  const names = [...new Set(Object.values(variants).map(({ worker }) => worker))]
  await Promise.all(
    names.map((name) => build(join(folder, name), `bench/stack/workers/${name}.ts`)),
  )
  const parts: Workers['parts'] = (id, quotas, { url, token, variables }, more) => {
    const { worker, settings } = variants[id]
    const said = JSON.stringify({ ...settings(quotas), ...more })
    return [join(folder, worker), { ...variables, url, token, settings: said }]
  }
  return {
    parts,
    start: (id, quotas, far, more, options) =>
      startIsolate(...parts(id, quotas, far, more), binary, options),
    mapOf: (id) => join(folder, variants[id].worker, `${variants[id].worker}.js.map`),
    async remove() {
      await rm(folder, { recursive: true, force: true })
      callOff()
    },
  }
}
