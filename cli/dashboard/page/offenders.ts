/** The clients with the most refusals, with buttons to look at them, and to ban and unban them. */
import type { Offender } from '../../../src/features/observe/report.ts'
import { byId, element, setText, showRows } from './dom.ts'
import { type ListedPolicy, type OperateTarget, operate } from './quotas.ts'
import { numberText, policyText } from './text.ts'

/** How many are shown at first. */
const FIRST = 10
/** The name of a client in Redis. */
const HASHED = /^[\w-]{16}$/

let isWhole = false
let shown: [Offender[], ListedPolicy[]] = [[], []]
const more = byId('offenders-more')

/** What an operation names the client by: its label, or the values of its key. Undefined for a label that stands for several clients. */
export function targetOf(subject: string, key: readonly string[]): OperateTarget | undefined {
  if (HASHED.test(subject)) return { subject }
  const parts = subject.split(',').map((part) => part.split('='))
  const isKey =
    parts.length === key.length &&
    parts.every(([label, value], index) => label === key[index] && value !== undefined)
  return isKey ? { key: parts.map(([, value]) => value!) } : undefined
}

export function showOffenders(offenders: Offender[], policies: ListedPolicy[]) {
  shown = [offenders, policies]
  byId('offenders-none').hidden = offenders.length > 0
  byId('offenders-hashed').hidden = !offenders.some(({ subject }) => HASHED.test(subject))
  more.hidden = offenders.length <= FIRST
  setText(more, isWhole ? `Show the first ${FIRST}` : `Show all ${offenders.length}`)
  more.setAttribute('aria-expanded', String(isWhole))
  showRows(byId('offenders'), isWhole ? offenders : offenders.slice(0, FIRST), {
    // A row is made again when its policy becomes known, since its buttons depend on it.
    key: ({ policy, subject }) =>
      JSON.stringify([policy, subject, policies.some(({ name }) => name === policy)]),
    cells: ({ policy, subject, refusals, error }) => [
      subject,
      policyText(policy),
      error > 0
        ? `${numberText(refusals - error)} to ${numberText(refusals)}`
        : numberText(refusals),
    ],
    actions: (offender) =>
      actionsFor(
        offender,
        policies.find(({ name }) => name === offender.policy),
      ),
  })
}

more.addEventListener('click', () => {
  isWhole = !isWhole
  showOffenders(...shown)
})

function actionsFor({ policy, subject }: Offender, listed: ListedPolicy | undefined): Node[] {
  const target = listed ? targetOf(subject, listed.key) : { subject }
  if (!target) return [element('small', 'The label stands for several clients.')]
  const hasBans = listed?.bans ?? true
  const actions: Node[] = [
    button('Peek', subject, () => operate('peek', policy, target)),
    button('Ban', subject, () => operate('ban', policy, target), hasBans),
    button('Unban', subject, () => operate('unban', policy, target), hasBans),
  ]
  return hasBans ? actions : [...actions, element('small', 'No bans: the policy has no penalty.')]
}

export function button(text: string, subject: string, onClick: () => unknown, isEnabled = true) {
  const made = element('button', text)
  made.type = 'button'
  made.disabled = !isEnabled
  made.setAttribute('aria-label', `${text} ${subject}`)
  made.addEventListener('click', onClick)
  return made
}
