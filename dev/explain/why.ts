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
  /** What does not match: a field of `match`, the list `allow`, or the key. */
  unmet: string
  /** The matching entry of the list. */
  entry?: string
  why: string
}

/** Describes why a policy does not apply to a request. The matcher has found the reason; this adds the values of both sides. */
export function whyNot(one: Unmet, seen: RequestView, config: Config): NotMet {
  const { name, match, onMissingKey, mode } = one.policy
  const because = { policy: name, met: false } as const
  if (one.unmet === 'allow') {
    const why = `${entryText(one.entry)} exempts the request`
    return { ...because, unmet: 'allow', entry: one.entry, why }
  }
  if (one.unmet === 'key') {
    const inShadow =
      onMissingKey === 'refuse' && mode === 'shadow' ? ', not enforced in shadow' : ''
    const { fault, part } = lackingOf(one)!
    const why = `the key part ${part} is ${fault} (onMissingKey: ${onMissingKey}${inShadow})`
    return { ...because, unmet: 'key', why }
  }
  return { ...because, unmet: one.field, why: detail(one.field, match, seen, config) }
}

/** The key part without a usable value, and what is wrong with it. */
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
      return `the method is ${quote(seen.method)}, the policy matches ${series(match.method!)}`
    case 'host':
      return `the host is ${quote(seen.host)}, the policy matches ${series(match.host!)}`
    case 'country':
      return `the country is ${country ? quote(country) : 'XX (unknown)'}, the policy matches ${series(match.country!)}`
    case 'path':
      return `the path is ${quote(seen.path)}, the policy matches ${series(match.path!)}`
    case 'ip':
      return `the address is ${address ? formatAddress(address) : 'unknown'}, the policy matches ${series(match.ip!)}`
    case 'header': {
      const { name, values } = match.header!.find((one) => !meets({ header: [one] }))!
      const sent = request.headers.get(name)
      return sent === null
        ? `the header ${name} is missing`
        : `the header ${name} is ${JSON.stringify(sent)}, the policy matches ${series(values!)}`
    }
    default: {
      const index = match.not!.findIndex(meets)
      return `match.not[${index}] excludes the request (${conditionText(match.not![index]!)})`
    }
  }
}

const SHOWN = 5

const series = (texts: string[], between = ', ') =>
  texts.slice(0, SHOWN).map(quote).join(between) +
  (texts.length > SHOWN ? ` … and ${texts.length - SHOWN} more` : '')

/** A condition as text, such as `method POST, path /a or /b`. */
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
