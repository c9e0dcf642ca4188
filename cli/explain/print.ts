import { spanText } from '../../src/core/base/duration.ts'
import { BY_FUNCTION, type Explained, type Explanation, type Met } from './explain.ts'
import { harmless, quote } from './text.ts'
import { entryText, lackingOf } from './why.ts'

export const toJson = (explanation: Explanation): string =>
  harmless(JSON.stringify(explanation, null, 2))

export function toText({ request, denied, policies, script, notes }: Explanation): string {
  const { method, url, path, seenAs, ip, country, asn, colo, ja4, botScore, verifiedBot } = request
  const from = [
    ip ?? 'an unknown address',
    country,
    asn && `AS${asn}`,
    colo,
    ja4 && `JA4 ${ja4}`,
    botScore && `bot score ${botScore}`,
    verifiedBot && `verified bot (${verifiedBot})`,
  ].filter(Boolean)
  const lines = [
    `${method} ${url} from ${from.join(', ')}`,
    ...(seenAs.join() === path ? [] : [seenText(path, seenAs)]),
    '',
    listsText(denied, policies),
    ...(policies.length > 0 ? ['', ...table(policies)] : []),
    ...(script ? ['', `In Redis, ${SCRIPTS[script]} decides.`] : []),
    ...notes.map((note) => `\nNote: ${note}.`),
  ]
  return harmless(lines.join('\n'))
}

const SCRIPTS = { compiled: 'a compiled script', general: 'the general script' }

function seenText(path: string, [first, ...more]: string[]): string {
  const others = more.map(quote).join(' or ')
  const readings = others && ` Some origins may read it as ${others}; the strictest reading counts.`
  return `Policies see the path ${quote(path)} as ${quote(first!)}.${readings}`
}

function listsText(denied: Explanation['denied'], policies: Explained[]): string {
  const lacking = denied && lackingOf(denied)
  if (lacking) {
    return `The policy "${denied.by}" refuses the request with 403, since the key part ${lacking.part} is ${lacking.fault}. Nothing is charged.`
  }
  if (denied) {
    return `The entry ${entryText(denied.by, 'deny')} refuses the request with 403. Nothing is charged.`
  }
  const skipped = policies.flatMap((one) => (!one.met && one.entry ? [one.entry] : []))
  const entries = [...new Set(skipped)].map((entry) => entryText(entry))
  const lists =
    entries.length > 0
      ? `${skipped.length} of ${new Set(policies.map(({ policy }) => policy)).size} policies do not apply because of ${entries.join(' and ')}.`
      : 'No entry of allow or deny matches the request.'
  return policies.some(({ met }) => met)
    ? lists
    : `${lists} No policy applies, so the request passes.`
}

/** A heading, and one row for each policy with its details in the last column. */
function table(policies: Explained[]): string[] {
  const width = Math.max(...policies.map(({ policy }) => policy.length), 'policy'.length)
  const row = (applies: string, policy: string, details: string) =>
    `${applies.padEnd(7)}  ${policy.padEnd(width)}  ${details}`
  const rows = policies.flatMap((one) => {
    const [first, ...more] = one.met ? metText(one) : [one.why]
    return [
      row(one.met ? 'yes' : 'no', one.policy, first!),
      ...more.map((line) => row('', '', line)),
    ]
  })
  return [
    row('applies', 'policy', 'limit, key and cost, or why the policy does not apply'),
    ...rows,
  ]
}

function metText(met: Met): string[] {
  const { algorithm, limit, burst, align, mode, cost, floor, key, insteadOf } = met
  const { refusal, usage, values } = met
  const quota = [
    sizeText(met),
    algorithm,
    ...(algorithm === 'token-bucket' ? [`burst ${burst}`] : []),
    ...(align === 'clock' ? ['aligned to the clock'] : []),
    ...(met.overrides ? ['operators may set another limit'] : []),
    ...(mode === 'shadow' ? ['in shadow'] : []),
  ]
  const parts = key.map((one) => partText(one, met)).join(', ')
  const instead = insteadOf
    ? ` (instead of ${insteadOf.join(' + ')}, ${insteadOf.length > 1 ? 'since a part' : 'which'} has no value)`
    : ''
  const whole = algorithm === 'token-bucket' ? burst : limit
  const kept = floor ? `, leaves ${floor} of ${whole} units free` : ''
  return [
    `limit  ${quota.join(', ')}`,
    `key    ${parts}${instead}`,
    ...(values ? [`counts ${values.map(valueText).join(', ')}`] : []),
    `cost   ${cost}${kept}${usage ? usageText(usage) : ''}`,
    ...(refusal && mode === 'enforce' ? [`refused  ${refusal}`] : []),
  ]
}

/** A value that is not known differs from every other one. */
const valueText = ({ part, value, fault }: Met['key'][number]) =>
  value === null
    ? `another ${part} (it is ${fault ?? 'missing'}, so that this request counts as another value)`
    : `${part} = ${quote(value)}`

const usageText = ({ paths, max, cut }: NonNullable<Met['usage']>) =>
  `, then ${paths.map(([path, units]) => (units === 1 ? path : `${units} × ${path}`)).join(' + ')} of the response, at most ${max}${cut ? '; ends a stream when the quota is used up' : ''}`

function sizeText({ limit, ofPlan, ofClaim, windowMs, calendar, algorithm }: Met): string {
  const sources = [
    ...(ofClaim ? [`${ofClaim.isSet ? 'of' : 'no'} claim ${ofClaim.claim}`] : []),
    ...(ofPlan === null || ofClaim?.isSet ? [] : [ofPlan ? 'of the plan' : 'no plan']),
  ]
  const units = `${limit}${sources.length > 0 ? ` (${sources.join(', ')})` : ''}`
  if (algorithm === 'concurrency') return `${units} in flight, each for up to ${spanText(windowMs)}`
  if (algorithm === 'distinct') return `${units} different values per ${spanText(windowMs)}`
  return calendar
    ? `${units} per ${calendar.unit} (${calendar.timeZone})`
    : `${units} per ${spanText(windowMs)}`
}

function partText({ part, value, fault }: Met['key'][number], { onMissingKey }: Met): string {
  if (fault) return `${part} is ${fault} (shared quota)` // even with onMissingKey: 'skip', which is for missing parts
  if (value === null) return `${part} is missing (onMissingKey: ${onMissingKey})`
  if (value === BY_FUNCTION) return 'result of a function'
  return part === 'global' ? part : `${part} = ${quote(value)}`
}
