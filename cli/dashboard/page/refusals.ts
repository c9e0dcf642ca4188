/** Who is refused, and by which policy: now, and since the counts began. */
import type { Stats } from '../../../src/features/observe/report.ts'
import { openClient } from './client.ts'
import { button, byId, element, setText, showRows } from './dom.ts'
import { refusing } from './figures.ts'
import { HASHED, type ListedPolicy, targetOf } from './policies.ts'
import { lastSeen, noteRefusals } from './seen.ts'
import { ageText, compactText, numberText, policyText, shareText } from './text.ts'
import { filterBy, isShown, view } from './view.ts'

/** How many clients are shown at first. */
const FIRST = 10

let isWhole = false
let shown: [Stats, ListedPolicy[]] | undefined
const more = byId('offenders-more')

export function showRefusals(stats: Stats, policies: ListedPolicy[]) {
  if (shown?.[0] !== stats) noteRefusals(stats)
  shown = [stats, policies]
  const rows = refusing(stats).filter(
    ({ policy }) => view.policy === undefined || view.policy === policy,
  )
  byId('now-none').hidden = rows.length > 0
  showRows(byId('now'), rows, {
    key: ({ policy }) => policy,
    cells: ({ policy, refused, requests }) => [
      policyText(policy),
      compactText(Math.round(refused)),
      shareText(refused, requests),
    ],
    share: ({ refused, requests }) => refused / requests,
    actions: ({ policy }) => [button('Clients', policyText(policy), () => filterBy(policy))],
  })
  showOffenders(stats, policies)
}

function showOffenders({ now, total }: Stats, policies: ListedPolicy[]) {
  const offenders = total.offenders.filter(isShown)
  const most = Math.max(...offenders.map(({ refusals }) => refusals))
  const none = byId('offenders-none')
  none.hidden = offenders.length > 0
  setText(none, total.offenders.length > 0 ? 'No client matches.' : 'No client has been refused.')
  byId('offenders-hashed').hidden = !offenders.some(({ subject }) => HASHED.test(subject))
  more.hidden = offenders.length <= FIRST
  setText(more, isWhole ? `Show the first ${FIRST}` : `Show all ${offenders.length}`)
  more.setAttribute('aria-expanded', String(isWhole))
  showRows(byId('offenders'), isWhole ? offenders : offenders.slice(0, FIRST), {
    // A row is made again when its policy becomes known, since its action depends on it.
    key: (one) =>
      JSON.stringify([one.policy, one.subject, policies.some(({ name }) => name === one.policy)]),
    cells: (one) => {
      const { policy, subject, refusals, error } = one
      const at = lastSeen(one)
      return [
        subject,
        policyText(policy),
        error > 0
          ? `${numberText(refusals - error)} to ${numberText(refusals)}`
          : numberText(refusals),
        at === undefined ? 'before this page' : `${ageText(now - at)} ago`,
      ]
    },
    share: ({ refusals }) => refusals / most,
    actions: ({ policy, subject }) => {
      const listed = policies.find(({ name }) => name === policy)
      const target = listed ? targetOf(subject, listed.key) : { subject }
      if (!target) return [element('small', 'Several clients')]
      return [button('Details', subject, () => openClient(policy, target, subject))]
    },
  })
}

more.addEventListener('click', () => {
  isWhole = !isWhole
  if (shown) showOffenders(...shown)
})
