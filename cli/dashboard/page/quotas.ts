/** Looks at the quotas of one key, and changes its ban. */
import type { LimitState, LimitStatus } from '../../../src/core/base/decision.ts'
import { call, messageIn } from './call.ts'
import { byId, element, setText, showOptions, showPairs } from './dom.ts'
import { durationText, numberText, shareText } from './text.ts'

/** A policy in the answer of `GET /policies`. */
export interface ListedPolicy {
  name: string
  algorithm: string
  limit: number
  windowMs: number
  mode: string
  key: string[]
  bans: boolean
  /** True if operators may set the limit of single keys. */
  overrides?: true
  decidedBy: string
}

/** The client of an operation: by its label, or by the values of the policy's key. */
export type OperateTarget = { subject: string } | { key: (string | null)[]; plan?: string }

/** The event after an operation that may have changed a ban. */
export const BANS_CHANGED = 'bans-changed'

const form = byId<HTMLFormElement>('look')
const select = form.elements.namedItem('policy') as HTMLSelectElement
const answer = byId('look-answer')
let policies: ListedPolicy[] = []

export function showPolicyChoice(list: ListedPolicy[]) {
  policies = list
  showOptions(
    select,
    list.map(({ name }) => [name, name]),
  )
  showKeyFields()
}

/** One field for each part of the policy's key. */
function showKeyFields() {
  const { key: parts = [], bans = true } = policies.find(({ name }) => name === select.value) ?? {}
  for (const one of form.querySelectorAll<HTMLButtonElement>('[name=action]')) one.disabled = !bans
  byId('look-no-bans').hidden = bans
  const place = byId('look-key')
  if ([...place.children].map((one) => one.firstChild!.textContent).join() === parts.join()) return
  place.replaceChildren(
    ...parts.map((part) => {
      const label = element('label', part)
      const input = element('input')
      input.autocomplete = 'off'
      input.value = part === 'global' ? 'global' : ''
      label.append(input)
      return label
    }),
  )
}

/** Calls an operation of a policy on one client, and shows the state of its quotas. */
export async function operate(
  operation: 'peek' | 'ban' | 'unban',
  policy: string,
  target: OperateTarget,
) {
  const problem = byId('look-problem')
  setText(problem, '')
  const name = 'subject' in target ? target.subject : target.key.join(', ')
  try {
    const status = await call<LimitStatus>(`policies/${encodeURIComponent(policy)}/${operation}`, {
      ...target,
      ...(operation === 'ban' && { for: byId<HTMLSelectElement>('ban-for').value }),
    })
    answer.replaceChildren(
      element('h3', `${name}, policy ${policy}`),
      ...status.limits.map(quotaOf),
    )
  } catch (error) {
    answer.replaceChildren()
    setText(problem, `${operation} ${name}, policy ${policy}: ${messageIn(error)}`)
  }
  if (operation !== 'peek') document.dispatchEvent(new Event(BANS_CHANGED))
  byId('look-title').scrollIntoView({ block: 'nearest' })
}

function quotaOf({
  limit,
  remaining,
  resetAfterMs,
  retryAfterMs,
  bannedForMs,
  overriddenForMs,
  allowed,
}: LimitState) {
  const used = Math.max(0, limit - remaining)
  const meter = element('meter')
  meter.max = limit
  meter.value = used
  meter.setAttribute('aria-label', 'used share of the quota')
  const list = element('dl')
  showPairs(list, {
    used: `${numberText(used)} of ${numberText(limit)} (${shareText(used, limit)})`,
    remaining: numberText(remaining),
    'next request': allowed ? 'allowed' : `refused, wait ${durationText(retryAfterMs)}`,
    'full again in': durationText(resetAfterMs),
    ...(overriddenForMs && { 'set by an operator': `for ${durationText(overriddenForMs)}` }),
    ban: bannedForMs ? `banned for ${durationText(bannedForMs)}` : 'not banned',
  })
  const quota = element('div')
  quota.append(meter, list)
  return quota
}

select.addEventListener('change', showKeyFields)
form.addEventListener('submit', (event) => {
  event.preventDefault()
  const operation = event.submitter?.getAttribute('value') ?? 'peek'
  const values = [...byId('look-key').querySelectorAll('input')].map(({ value }) => value || null)
  const plan = (form.elements.namedItem('plan') as HTMLInputElement).value
  operate(operation as 'peek', select.value, { key: values, ...(plan && { plan }) })
})
