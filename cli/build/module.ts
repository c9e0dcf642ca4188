/** Writes a parsed configuration as a module. */
import { fingerprintOf, type LackingHost } from '../../src/built/built.ts'
import { Calendar } from '../../src/core/base/calendar.ts'
import { isUsed } from '../../src/core/config/feature.ts'
import type { ConfigOptions } from '../../src/core/config/options.ts'
import type { Config, Policy } from '../../src/core/config/parse.ts'
import type { Feature } from '../../src/core/feature.ts'
import { listsBans } from '../../src/features/bans/watch.ts'
import * as features from '../../src/features/compile.ts'
import { hosts, writtenFrom } from '../project/hosts.ts'

/** True if the module of a gateway needs this endpoint of operators. Not by what it does, since the command has no decision API. */
const operators = {
  banList: listsBans,
  keyLimits: (config: Config) => isUsed(config, ({ overrides }) => overrides),
}

/** The names of the features without parameters that a configuration needs, and does not name in `use`. */
export const neededBy = (config: Config, isGateway = false): string[] =>
  [
    ...Object.entries<Feature['compile']>(features)
      .filter(([name]) => !config.use.some((one) => one.name === name))
      .filter(([, compile]) => Object.keys(compile({ config, log: () => {} })).length > 0),
    ...Object.entries(operators).filter(([, isNeeded]) => isGateway && isNeeded(config)),
  ]
    .map(([name]) => name)
    .sort()

/** A configuration in normal form as an expression. */
export interface Expression {
  text: string
  /** True if it reads functions or other objects of `options`, the configuration as it is written. */
  usesOptions: boolean
}

/**
 * Writes the normal form. A function, and an object of a class, is the one of `options`.
 * @throws {Error} for a value that is not in the options
 */
export function expressionOf(config: Config, options: ConfigOptions): Expression {
  const places = placesIn(options)
  let usesOptions = false
  function write(value: unknown): string {
    if (value instanceof Calendar)
      return `new Calendar(${textOf(value.unit)}, ${textOf(value.timeZone)})`
    const known = isPlain(value) ? undefined : places.get(value)
    if (known) usesOptions = true
    if (known) return known
    if (Array.isArray(value)) return `[${value.map(write).join(', ')}]`
    if (typeof value === 'function' || !isPlain(value))
      throw new Error(`a ${typeof value} that is not in the file cannot be written`)
    if (typeof value !== 'object' || value === null) return textOf(value)
    const fields = Object.entries(value).filter(([, one]) => one !== undefined)
    return `{ ${fields.map(([name, one]) => `${nameOf(name)}: ${write(one)}`).join(', ')} }`
  }
  const { use, store, headers: _, expect: __, accept: ___, policies, ...rest } = config
  const lean = {
    ...rest,
    policies: policies.map(({ accept, ...policy }): Omit<Policy, 'accept'> => policy),
    ...{ allow: config.allow.map(withoutAccept), deny: config.deny.map(withoutAccept) },
    store,
  }
  const used = use.map((feature) => {
    const { built } = feature
    return built
      ? `${built.maker}(${write(built.settings)}, { ${built.parts.join(', ')} })`
      : write(feature)
  })
  const headers = [options.headers ?? 'draft-11'].flat().filter((one) => one !== 'off')
  const sets = headers.map((one) =>
    one === 'draft-11' ? textOf(one) : `headerSet(${JSON.stringify(one)})`,
  )
  const text = `{ ...${write(lean)}, use: [${used.join(', ')}], headers: [${sets.join(', ')}] }`
  return { text, usesOptions }
}

const withoutAccept = <Entry extends { accept: unknown }>({ accept, ...entry }: Entry) => entry

const textOf = (value: unknown) =>
  typeof value === 'number' || value === undefined ? String(value) : JSON.stringify(value)

/** The name of a field in an expression, where `"__proto__": {}` sets the prototype. */
const nameOf = (name: string) => (name === '__proto__' ? '["__proto__"]' : JSON.stringify(name))

const isPlain = (value: unknown) =>
  Object(value) !== value ||
  [Object.prototype, Array.prototype, null].includes(Object.getPrototypeOf(value))

/** Where each function, and each object of a class or with functions, is in the options. */
function placesIn(options: object): Map<unknown, string> {
  const places = new Map<unknown, string>()
  const walk = (value: unknown, place: string) => {
    if (Object(value) !== value || places.has(value)) return
    places.set(value, place)
    for (const [name, part] of Object.entries(value as object))
      walk(part, `${place}[${/^\d+$/.test(name) ? name : JSON.stringify(name)}]`)
  }
  walk(options, 'options')
  return places
}

/** The hosts that have all that a configuration needs, of those that lack something. */
export const fitsOf = (options: ConfigOptions) =>
  (['node', 'next'] as const).filter((name) => {
    try {
      return hosts[name].parse(options)
    } catch {
      return false
    }
  })

/** What a module is written from. */
export interface Source {
  /** The options as the host parses them. */
  config: Config
  options: ConfigOptions
  /** The import of the configuration. */
  from: string
  /** Absent for limits, which have no host. */
  fits?: LackingHost[]
  /** Defaults to those that the configuration needs. */
  needed?: string[]
}

/** A text in single quotes, as formatters write it. */
const quoted = (text: string) => `'${text.replace(/['\\]/g, '\\$&')}'`

/** The text of the module. */
export function moduleOf({
  config,
  options,
  from,
  fits,
  needed = neededBy(config),
}: Source): string {
  const { text, usesOptions } = expressionOf(config, options)
  // Functions get the context of Hono, apart from those of the store.
  const { usesOptions: hasFunctions } = expressionOf({ ...config, store: undefined }, options)
  const gateway = hasFunctions ? 'createGateway' : 'createWorker as createGateway'
  const isLive = config.live !== undefined
  const readsOptions = usesOptions || isLive
  const imported = [
    ...['built', 'compared', ...needed],
    ...config.use.flatMap(({ built }) => (built ? [built.maker, ...built.parts] : [])),
    ...(text.includes('headerSet(') ? ['headerSet'] : []),
    ...(config.policies.some(({ calendar }) => calendar) ? ['Calendar'] : []),
  ]
  const entry = fits ? 'sluice/built' : 'sluice/built/limits'
  const names = config.policies.map(({ name }) => name)
  const source = readsOptions ? 'options' : `() => import(${quoted(from)})`
  const comparison = `compared(${fingerprintOf(options)}, ${source})`
  return `${writtenFrom(from)}
// @ts-nocheck
import { ${imported.join(', ')} } from '${entry}'
${readsOptions ? `import options from ${quoted(from)}\n` : ''}
export { ${fits ? `${gateway}, createSluice, rateLimiter` : 'limits'} } from '${entry}'

export default built({
  ${
    fits
      ? ''
      : `names: ${JSON.stringify(names)},
  `
  }config: ${text},
  features: [${needed.join(', ')}],${fits ? `\n  fits: ${JSON.stringify(fits)},` : ''}${isLive ? "\n  live: { options, load: () => import('sluice/built/parser') }," : ''}
  compared: ${readsOptions ? comparison : `${IN_DEVELOPMENT} && ${comparison}`},
})
`
}

/** Bundlers replace it with false for a deployment, and leave out what follows. */
const IN_DEVELOPMENT = "typeof process === 'object' && process.env.NODE_ENV === 'development'"
