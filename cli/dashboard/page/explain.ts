/** Explains which policies apply to a request. */
import type { Trial } from '../../../src/api/explain.ts'
import { call, messageIn } from './call.ts'
import { byId, setText, showRows } from './dom.ts'
import type { ListedPolicy } from './policies.ts'
import { durationText, numberText } from './text.ts'

const form = byId<HTMLFormElement>('explain')
const value = (name: string) => (form.elements.namedItem(name) as HTMLInputElement).value.trim()

/** @throws Error if a line is not a header field */
function described() {
  const headers = value('headers')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name, text] = /^([^:]+):(.*)$/.exec(line) ?? []
      if (name === undefined)
        throw new Error(`Header fields: expected "name: value", got "${line}"`)
      return [name.trim(), text!.trim()]
    })
  const [ip, country] = [value('ip'), value('country')]
  return {
    method: value('method'),
    url: value('url'),
    headers: Object.fromEntries(headers),
    ...(ip && { ip }),
    ...(country && { country }),
  }
}

const keyText = (key: { part: string; value: string | null; fault?: string }[]) =>
  key.map(({ part, value, fault }) => `${part}=${value ?? fault ?? 'missing'}`).join(', ')

function cells(trial: Trial): string[] {
  const { policy, denied } = trial
  if (!trial.met) return [policy, `no: ${reasonOf(trial)}`, '', '', '']
  const { mode, key, otherKeys = [], cost, limit, windowMs } = trial
  return [
    policy,
    denied ? `no: denied by ${denied.by}` : mode === 'shadow' ? 'yes (shadow)' : 'yes',
    [key, ...otherKeys].map(keyText).join(' and '),
    numberText(cost),
    `${numberText(limit)} per ${durationText(windowMs)}`,
  ]
}

function reasonOf({
  unmet,
  field,
  entry,
  missing,
  unreadable,
  unverified,
  denied,
}: Trial & { met: false }) {
  if (unmet === 'match') return field ? `match.${field} does not fit` : 'match does not fit'
  if (unmet === 'allow') return `allowed by ${entry}`
  if (unmet === 'deny') return `denied by ${denied?.by}`
  if (missing) return `the key part ${missing} is missing`
  return `the key part ${unreadable ?? unverified} is ${unreadable ? 'unreadable' : 'unverified'}`
}

export function onExplain(policies: () => ListedPolicy[]) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const problem = byId('explain-problem')
    setText(problem, '')
    try {
      const request = described()
      const trials: Trial[] = []
      for (const { name } of policies()) {
        trials.push(await call(`policies/${encodeURIComponent(name)}/try`, { request }))
      }
      showRows(byId('explain-answer'), trials, { key: ({ policy }) => policy, cells })
      byId('explain-table').hidden = false
    } catch (error) {
      setText(problem, messageIn(error))
    }
  })
}
