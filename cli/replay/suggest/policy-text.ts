import type { PolicyOptions } from '../../../src/core/config/options.ts'

type Field = keyof PolicyOptions

/** Fields that belong to a quota of another size or algorithm. */
const QUOTA = new Set<string>([
  ...(['algorithm', 'limit', 'window', 'timeZone', 'align', 'burst'] satisfies Field[]),
  ...(['limits', 'plan', 'penalty', 'lease', 'mode'] satisfies Field[]),
])

const MAX_WIDTH = 96
const MAX_NAME = 64

/**
 * A policy in shadow mode that counts the requests of another one with a sliding window of this size.
 * @param taken the names of other policies
 */
export function shadowPolicy(
  written: PolicyOptions,
  quota: { limit: number; window: string },
  taken: readonly string[],
): PolicyOptions {
  const rest = Object.entries(written).filter(([field]) => !QUOTA.has(field))
  let { name } = written
  for (let count = 1; taken.includes(name); count += 1) {
    const suffix = count > 1 ? `-suggested-${count}` : '-suggested'
    name = `${written.name.slice(0, MAX_NAME - suffix.length)}${suffix}`
  }
  return { ...Object.fromEntries(rest), name, ...quota, mode: 'shadow' } as PolicyOptions
}

/** A policy as an entry of `policies`, in TypeScript. */
export function policyText(policy: PolicyOptions): string {
  const oneLine = `${literal(policy)},`
  if (oneLine.length <= MAX_WIDTH) return oneLine
  const fields = Object.entries(policy).filter(([, value]) => value !== undefined)
  return `{\n${fields.map((field) => `  ${property(field)},\n`).join('')}},`
}

function literal(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const fields = Object.entries(value).filter(([, one]) => one !== undefined)
  return fields.length > 0 ? `{ ${fields.map(property).join(', ')} }` : '{}'
}

const property = ([name, value]: [string, unknown]) =>
  `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name)}: ${literal(value)}`

const quoted = (text: string) =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
