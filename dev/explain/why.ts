import type { Lacking } from '../../src/base/decision.ts'
import { formatAddress } from '../../src/base/ip.ts'
import type { Config } from '../../src/config/parse.ts'
import type { Condition } from '../../src/config/schema/condition.ts'
import { compileCondition } from '../../src/match/condition.ts'
import type { Unmet } from '../../src/match/match.ts'
import type { RequestView } from '../../src/request/view.ts'
import { quote } from './text.ts'

export interface NotMet {
  policy: string
  met: false
  /** A field of the match, the list `allow`, or the key. */
  unmet: string
  /** The entry of the list. */
  entry?: string
  why: string
}

/** Why a policy does not meet a request, in words. Which it is has been decided: here only what stands on both sides is looked up. */
export function whyNot(one: Unmet, seen: RequestView, config: Config): NotMet {
  const { name, match, onMissingKey, mode } = one.policy
  const because = { policy: name, met: false } as const
  if (one.unmet === 'allow') {
    return { ...because, unmet: 'allow', entry: one.entry, why: `${entryText(one.entry)} skips it` }
  }
  if (one.unmet === 'key') {
    const does = onMissingKey === 'refuse' && mode === 'shadow' ? 'skip (in shadow)' : onMissingKey
    const { fault, part } = lackingOf(one)!
    return { ...because, unmet: 'key', why: `key: ${part} is ${fault} → ${does}` }
  }
  return {
    ...because,
    unmet: one.field,
    why: `${one.field}: ${detail(one.field, match, seen, config)}`,
  }
}

/** What is wrong with a part of a key, and which part. */
export function lackingOf(of: Lacking): { fault: keyof Lacking; part: string } | undefined {
  for (const fault of ['missing', 'unreadable', 'unverified'] as const) {
    const part = of[fault]
    if (part !== undefined) return { fault, part }
  }
  return undefined
}

/** `allow[0]`, or `allow "office"`. */
export const entryText = (name: string, list = 'allow') =>
  name.startsWith(`${list}[`) ? name : `${list} "${name}"`

function detail(
  field: keyof Condition,
  match: Condition,
  seen: RequestView,
  config: Config,
): string {
  const meets = (condition: Condition) => compileCondition(condition, config)(seen) === undefined
  const { address, country, request } = seen
  switch (field) {
    case 'method':
      return `is ${quote(seen.method)}, the policy has ${series(match.method!)}`
    case 'host':
      return `is ${quote(seen.host)}, the policy has ${series(match.host!)}`
    case 'country':
      return `is ${country ? quote(country) : 'XX (unknown)'}, the policy has ${series(match.country!)}`
    case 'path':
      return `${quote(seen.path)} is not ${series(match.path!, ' or ')}`
    case 'ip':
      return `${address ? formatAddress(address) : 'the address, unknown,'} is not in ${series(match.ip!, ' or ')}`
    case 'header': {
      const { name, values } = match.header!.find((one) => !meets({ header: [one] }))!
      const sent = request.headers.get(name)
      return sent === null
        ? `${name} is missing`
        : `${name} is ${JSON.stringify(sent)}, the policy has ${series(values!)}`
    }
    default: {
      const index = match.not!.findIndex(meets)
      return `not[${index}] takes it away (${conditionText(match.not![index]!)})`
    }
  }
}

const SHOWN = 5

const series = (texts: string[], between = ', ') =>
  texts.slice(0, SHOWN).map(quote).join(between) +
  (texts.length > SHOWN ? ` … and ${texts.length - SHOWN} more` : '')

/** `method POST, path /a or /b`. */
const conditionText = ({ header, not, ...fields }: Condition): string =>
  [
    ...Object.entries(fields).flatMap(([field, values]) =>
      values ? [`${field} ${series(values, ' or ')}`] : [],
    ),
    ...(header ?? []).map(({ name, values }) =>
      values ? `${name} ${series(values, ' or ')}` : `any ${name}`,
    ),
    ...(not ?? []).map((condition) => `but not ${conditionText(condition)}`),
  ].join(', ') || 'every request'
