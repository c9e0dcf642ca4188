import type { Lacking } from '../../src/core/base/decision.ts'
import { formatAddress } from '../../src/core/base/ip.ts'
import type { Config } from '../../src/core/config/parse.ts'
import type { Condition } from '../../src/core/config/schema/condition.ts'
import { compileCondition } from '../../src/core/program/condition.ts'
import type { Unmet } from '../../src/core/program/match.ts'
import { pathOf } from '../../src/core/request/path.ts'
import type { RequestView } from '../../src/core/request/view.ts'
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
      return `the path is ${quote(pathOf(seen))}, the policy matches ${series(match.path!)}`
    case 'ip':
      return `the address is ${address ? formatAddress(address) : 'unknown'}, the policy matches ${series(match.ip!)}`
    case 'asn':
      return `the network is ${seen.asn ? `AS${seen.asn}` : 'unknown'}, the policy matches ${series(match.asn!)}`
    case 'verifiedBot':
      return `${botText(seen.verifiedBot)}, the policy matches ${botsText(match.verifiedBot!)}`
    case 'ja4':
      return `the JA4 fingerprint is ${seen.ja4 ? quote(seen.ja4) : 'unknown'}, the policy matches ${series(match.ja4!)}`
    case 'botScore':
      return `the bot score is ${seen.botScore ?? 'unknown'}, the policy matches ${rangeText(match.botScore!)}`
    case 'query': {
      const { name, values } = match.query!.find((one) => !meets({ query: [one] }))!
      const sent = seen.query.getAll(name)
      return sent.length === 0
        ? `the parameter ${name} is missing`
        : `the parameter ${name} is ${series(sent)}, the policy matches ${series(values!)}`
    }
    case 'header': {
      const { name, values } = match.header!.find((one) => !meets({ header: [one] }))!
      const sent = request.headers.get(name)
      return sent === null
        ? `the header ${name} is missing`
        : `the header ${name} is ${JSON.stringify(sent)}, the policy matches ${series(values!)}`
    }
    case 'jwt':
    case 'apiKey':
      return match[field]
        ? `the request is without ${CREDENTIAL[field]}, the policy matches requests with one`
        : `the request has ${CREDENTIAL[field]}, the policy matches requests without one`
    case 'body':
      return `the body has other values, the policy matches ${bodyText(match.body!)}`
    default: {
      const index = match.not!.findIndex(meets)
      return `match.not[${index}] excludes the request (${conditionText(match.not![index]!)})`
    }
  }
}

const SHOWN = 5

const series = (values: (string | number)[], between = ', ') =>
  values
    .slice(0, SHOWN)
    .map((value) => quote(String(value)))
    .join(between) + (values.length > SHOWN ? ` … and ${values.length - SHOWN} more` : '')

const botText = (bot: string | undefined) =>
  bot === undefined
    ? 'it is unknown if the client is a verified bot'
    : bot === ''
      ? 'the client is not a verified bot'
      : `the client is a verified bot of the category ${quote(bot)}`

const botsText = (wanted: NonNullable<Condition['verifiedBot']>) =>
  Array.isArray(wanted)
    ? series(wanted, ' or ')
    : wanted
      ? 'verified bots'
      : 'other clients than verified bots'

const CREDENTIAL = { jwt: 'a verified token', apiKey: 'a known API key' }

const rangeText = ({ atLeast, below }: NonNullable<Condition['botScore']>) =>
  [atLeast && `at least ${atLeast}`, below && `below ${below}`].filter(Boolean).join(' and ')

const namedText = ({ name, values }: NonNullable<Condition['header']>[number]) =>
  values ? `${name} ${series(values, ' or ')}` : `any ${name}`

const bodyText = (body: NonNullable<Condition['body']>) => body.map(namedText).join(', ')

/** A condition as text, such as `method POST, path /a or /b`. */
const conditionText = ({
  header,
  query,
  body,
  verifiedBot,
  botScore,
  jwt,
  apiKey,
  not,
  ...fields
}: Condition): string =>
  [
    ...Object.entries(fields).flatMap(([field, values]) =>
      values ? [`${field} ${series(values, ' or ')}`] : [],
    ),
    ...(verifiedBot === undefined ? [] : [botsText(verifiedBot)]),
    ...(jwt === undefined ? [] : [`${jwt ? 'with' : 'without'} ${CREDENTIAL.jwt}`]),
    ...(apiKey === undefined ? [] : [`${apiKey ? 'with' : 'without'} ${CREDENTIAL.apiKey}`]),
    ...(botScore ? [`bot score ${rangeText(botScore)}`] : []),
    ...[...(header ?? []), ...(query ?? []), ...(body ?? [])].map(namedText),
    ...(not ?? []).map((condition) => `but not ${conditionText(condition)}`),
  ].join(', ') || 'every request'
