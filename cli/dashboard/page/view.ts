/** What the page shows: the range, one policy or all, some clients or all, live or as it was. */
import { type Range, ranges } from '../ranges.ts'
import { byId, element, setText, showOptions } from './dom.ts'
import { policyText } from './text.ts'

const ALL = 'all policies'

export const view = {
  range: 'minutes' as Range,
  /** `undefined` for all. */
  policy: undefined as string | undefined,
  /** A part of the names of clients, in lower case. */
  client: '',
  isLive: true,
}

const policies = byId<HTMLSelectElement>('view-policy')
const client = byId<HTMLInputElement>('view-client')
const live = byId('live')

/** True if a row of a client belongs to what is shown. */
export const isShown = ({ policy, subject }: { policy: string; subject: string }): boolean =>
  (view.policy === undefined || view.policy === policy) &&
  subject.toLowerCase().includes(view.client)

export function showPolicyFilter(names: string[]) {
  showOptions(policies, [
    [ALL, ALL],
    ...names.map((name): [string, string] => [`policy ${name}`, policyText(name)]),
  ])
}

/** Shows one policy only. */
export function filterBy(policy: string) {
  policies.value = `policy ${policy}`
  policies.dispatchEvent(new Event('change'))
}

/** @param keepsWeek true if a sink keeps the counts of a week */
export function showRanges(keepsWeek: boolean) {
  const place = byId('ranges')
  if (place.querySelector('input')) return
  for (const [name, { label }] of Object.entries(ranges)) {
    if (name === 'week' && !keepsWeek) continue
    const input = element('input')
    Object.assign(input, {
      type: 'radio',
      name: 'range',
      value: name,
      checked: name === view.range,
    })
    const made = element('label')
    made.append(input, element('span', label))
    place.append(made)
  }
}

/** @param onChange called after each change, with true if the range is another one */
export function onView(onChange: (isOtherRange: boolean) => void) {
  policies.addEventListener('change', () => {
    view.policy = policies.value === ALL ? undefined : policies.value.slice('policy '.length)
    onChange(false)
  })
  client.addEventListener('input', () => {
    view.client = client.value.trim().toLowerCase()
    onChange(false)
  })
  byId('ranges').addEventListener('change', ({ target }) => {
    view.range = (target as HTMLInputElement).value as Range
    onChange(true)
  })
  live.addEventListener('click', () => {
    view.isLive = !view.isLive
    live.setAttribute('aria-pressed', String(view.isLive))
    setText(live, view.isLive ? 'Live' : 'Paused')
    onChange(false)
  })
  byId('view').addEventListener('submit', (event) => event.preventDefault())
}
