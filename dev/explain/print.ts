import { BY_FUNCTION, type Explained, type Explanation, type Met } from './explain.ts'
import { harmless, quote, spanText } from './text.ts'
import { entryText, lackingOf } from './why.ts'

export const toJson = (explanation: Explanation): string =>
  harmless(JSON.stringify(explanation, null, 2))

export function toText({ request, denied, policies, notes }: Explanation): string {
  const { method, url, path, seenAs, ip, country, asn, colo } = request
  const from = [ip ?? 'an unknown address', country, asn && `AS${asn}`, colo].filter(Boolean)
  const lines = [
    `${method} ${url} from ${from.join(', ')}`,
    ...(seenAs.join() === path ? [] : [seenText(path, seenAs)]),
    '',
    listsText(denied, policies),
    ...(policies.length > 0 ? ['', ...table(policies)] : []),
    ...notes.map((note) => `\nNote: ${note}.`),
  ]
  return harmless(lines.join('\n'))
}

function seenText(path: string, [first, ...more]: string[]): string {
  const others = more.map(quote).join(' or ')
  const readings = others && `, and by some origins as ${others}: the strictest counts`
  return `The path ${quote(path)} is seen as ${quote(first!)}${readings}.`
}

function listsText(denied: Explanation['denied'], policies: Explained[]): string {
  const lacking = denied && lackingOf(denied)
  if (lacking) {
    return `403: "${denied.by}" refuses it, since ${lacking.part} is ${lacking.fault}. Nothing is counted.`
  }
  if (denied) return `403: ${entryText(denied.by, 'deny')} refuses it. Nothing is counted.`
  const skipped = policies.flatMap((one) => (!one.met && one.entry ? [one.entry] : []))
  const entries = [...new Set(skipped)].map((entry) => entryText(entry))
  const lists =
    entries.length > 0
      ? `${entries.join(' and ')} lets it skip ${skipped.length} of ${new Set(policies.map(({ policy }) => policy)).size} policies.`
      : 'No list names it.'
  return policies.some(({ met }) => met) ? lists : `${lists} It meets no policy: it passes.`
}

/** A row for each policy, the rest of what is said of it below. */
function table(policies: Explained[]): string[] {
  const width = Math.max(...policies.map(({ policy }) => policy.length))
  return policies.flatMap((one) => {
    const [first, ...more] = one.met ? metText(one) : [one.why]
    const head = `${one.met ? 'met' : 'not met'}`.padEnd(7)
    return [
      `${head}  ${one.policy.padEnd(width)}  ${first}`,
      ...more.map((line) => `${' '.repeat(width + 11)}${line}`),
    ]
  })
}

function metText(met: Met): string[] {
  const { algorithm, burst, align, mode, check, cost, key, insteadOf } = met
  const quota = [
    sizeText(met),
    algorithm,
    ...(algorithm === 'token-bucket' ? [`burst ${burst}`] : []),
    ...(align === 'clock' ? ['by the clock'] : []),
    ...(mode === 'shadow' ? ['in shadow'] : []),
    ...(check === 'parallel' ? ['checked in parallel'] : []),
  ]
  const parts = key.map((one) => partText(one, met)).join(', ')
  const instead = insteadOf
    ? ` (instead of ${insteadOf.join(' + ')}, ${insteadOf.length > 1 ? 'of which a part' : 'which'} has no value)`
    : ''
  return [quota.join(', '), `key   ${parts}${instead}`, `cost  ${cost}`]
}

function sizeText({ limit, ofPlan, windowMs, calendar, algorithm }: Met): string {
  const units = `${limit}${ofPlan ? ' (its plan)' : ofPlan === false ? ' (no plan)' : ''}`
  if (algorithm === 'concurrency') return `${units} at once, each for ${spanText(windowMs)} at most`
  return calendar
    ? `${units} in a ${calendar.unit} (${calendar.timeZone})`
    : `${units} in ${spanText(windowMs)}`
}

function partText({ part, value, fault }: Met['key'][number], { onMissingKey }: Met): string {
  if (fault) return `${part} is ${fault} → share` // "skip" is for what is missing
  if (value === null) return `${part} is missing → ${onMissingKey}`
  if (value === BY_FUNCTION) return 'by a function'
  return part === 'global' ? part : `${part} = ${quote(value)}`
}
