/** The clients with the most refusals, with buttons to look at them, and to ban and unban them. */
import type { Offender } from '../../../src/features/observe/report.ts'
import { byId, element, showRows } from './dom.ts'
import { type ListedPolicy, operate } from './quotas.ts'
import { numberText, policyText } from './text.ts'

export function showOffenders(offenders: Offender[], policies: ListedPolicy[]) {
  byId('offenders-none').hidden = offenders.length > 0
  showRows(byId('offenders'), offenders, {
    key: ({ policy, subject }) => JSON.stringify([policy, subject]),
    cells: ({ policy, subject, refusals, error }) => [
      subject,
      policyText(policy),
      error > 0
        ? `${numberText(refusals - error)} to ${numberText(refusals)}`
        : numberText(refusals),
    ],
    actions: ({ policy, subject }) => {
      const hasBans = policies.find(({ name }) => name === policy)?.bans ?? true
      const target = { subject }
      return [
        button('Look', subject, () => operate('peek', policy, target)),
        button('Ban', subject, () => operate('ban', policy, target), hasBans),
        button('Unban', subject, () => operate('unban', policy, target), hasBans),
      ]
    },
  })
}

function button(text: string, subject: string, onClick: () => unknown, isEnabled = true) {
  const made = element('button', text)
  made.type = 'button'
  made.disabled = !isEnabled
  if (!isEnabled)
    made.title = "The policy has no bans. Set its field penalty, for example to 'manual'."
  made.setAttribute('aria-label', `${text} ${subject}`)
  made.addEventListener('click', onClick)
  return made
}
