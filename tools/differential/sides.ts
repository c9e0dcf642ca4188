/** A built package as one of the two sides. Its entries may have any names: a name is searched in all of them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { builtConfig } from './built.ts'
import { durableStore, type Use } from './configs.ts'
import { hosts } from './hosts.ts'
import type { Side } from './side.ts'

type Exported = Record<string, unknown>
type Make = (...options: unknown[]) => object

/** Entries without a part of the limiter, or with other names for it. They start servers, or need packages or a runtime of their own. */
const APART = ['./testing', './lint', './client', './nest', './better-auth', './rpc']
/** Entries for configurations that are built. They have the names of other entries. */
const BUILT = /^\.\/built(\/|$)/

async function entriesOf(name: string, folder: string): Promise<Map<string, Exported>> {
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const entries = new Map<string, Exported>()
  for (const [entry, target] of Object.entries<string | { default: string }>(exports)) {
    const file = typeof target === 'string' ? target : target.default
    if (!file.endsWith('.js') || APART.includes(entry)) continue
    try {
      entries.set(entry, await import(pathToFileURL(join(folder, file)).href))
    } catch (error) {
      console.warn(`The entry ${entry} of the side ${name} does not load: ${error}`)
    }
  }
  return entries
}

/** Plain lists and objects anew: a limiter freezes those that it gets. */
const copyOf = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(copyOf)
    : value && Object.getPrototypeOf(value) === Object.prototype
      ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, copyOf(one)]))
      : value

/** @param builds true if the side also takes configurations that are built */
export async function loadSide(name: string, folder: string, builds: boolean): Promise<Side> {
  const entries = await entriesOf(name, folder)
  const found = (wanted: string) =>
    [...entries].find(([entry, one]) => !BUILT.test(entry) && wanted in one)?.[1][wanted]
  /** A function of an entry, or of the first entry that has it. */
  const exported = (wanted: string, entry?: string): Make => {
    const one = entry ? entries.get(entry)?.[wanted] : found(wanted)
    if (one) return one as Make
    throw new Error(`The side ${name} does not export ${wanted}.`)
  }
  /** A feature that is not exported is on by default. */
  const made = ([feature, ...options]: Use) =>
    found(feature) ? [exported(feature)(...options)] : []
  return {
    name,
    exports: (wanted) => found(wanted) !== undefined,
    Objects: found('SluiceSubject'),
    create({ host, config, use, store, isBuilt }, namespace) {
      const whole = {
        ...(copyOf(config) as typeof config),
        namespace,
        use: use.flatMap(made),
        ...(store === durableStore && { store: exported(durableStore)() }),
      }
      if (!isBuilt || !builds) return hosts[host](exported, whole)
      const ofBuilt = (wanted: string, entry = '.') =>
        exported(wanted, entry.replace('.', './built'))
      return hosts[host](
        ofBuilt,
        builtConfig(host, whole as never, (entry) => entries.get(entry)),
      )
    },
  }
}
