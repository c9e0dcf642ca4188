/** Expectations in words. */
import { labelOf } from '../../core/program/key.ts'
import type { Bound, Gap } from './bound.ts'
import type { Expectation } from './options.ts'

const few = (values: readonly unknown[]) =>
  values.length > 3 ? `${values.slice(0, 3).join(', ')}, …` : values.join(', ')

/** `POST /login by ip`: the requests of one client. */
export function titleOf({ request, per }: Pick<Expectation, 'request' | 'per'>): string {
  const { method, path, ...others } = request
  // The parser adds HEAD to GET.
  const methods = method?.filter((name) => name !== 'HEAD' || !method.includes('GET'))
  const more = Object.entries(others).flatMap(([field, value]) =>
    value === undefined ? [] : field,
  )
  const what = [few(methods ?? []), few(path ?? [])].filter(Boolean).join(' ') || 'every request'
  const where = more.length > 0 ? ` (${more.join(', ')} as written)` : ''
  return `${what}${where} by ${per.map(labelOf).join(' + ')}`
}

/** Why a policy does not bound a request, as the end of a sentence that begins with its name. */
export function gapText(gap: Gap): string {
  switch (gap.why) {
    case 'shadow':
      return 'is in shadow and refuses nothing'
    case 'slots':
      return 'limits how many are in flight, and not how many pass'
    case 'values':
      return 'limits different values, and not how many requests pass'
    case 'response':
      return 'refunds by the response'
    case 'free':
      return 'charges nothing for it'
    case 'match':
      return `does not match (${gap.field})`
    case 'allow':
      return `is skipped by ${gap.entry.startsWith('allow[') ? gap.entry : `allow "${gap.entry}"`}`
    case 'skip':
      return `skips a request without ${labelOf(gap.part)} (onMissingKey)`
    case 'key':
      return `counts by ${labelOf(gap.part)}, and each value gets a quota of its own`
  }
}

/** The policies that apply to a request and are no bound of it, as sentences. Empty without one. */
export const noBoundText = (bounds: readonly Bound[]): string =>
  bounds
    .flatMap(({ policy: { name }, gap }) => {
      if (!gap || gap.why === 'match') return []
      const field = gap.why === 'response' ? ` (${gap.field})` : ''
      return `. "${name}" is no bound: it ${gapText(gap)}${field}`
    })
    .join('')

const LISTED = 4

export function gapsText(bounds: readonly Bound[]): string {
  const gaps = bounds.flatMap(({ policy, gap }) => (gap ? `"${policy.name}" ${gapText(gap)}` : []))
  const more = gaps.length > LISTED ? `; and ${gaps.length - LISTED} more` : ''
  return gaps.length > 0 ? `${gaps.slice(0, LISTED).join('; ')}${more}` : 'there is no policy'
}
