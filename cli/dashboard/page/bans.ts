/** The keys that are banned now, with buttons to look at them and to unban them. */
import type { BanPage, BanReport } from '../../../src/features/bans/endpoint.ts'
import { call } from './call.ts'
import { byId, element, setText, showRows } from './dom.ts'
import { button, targetOf } from './offenders.ts'
import { type ListedPolicy, operate } from './quotas.ts'
import { durationText, numberText } from './text.ts'

interface Row extends BanReport {
  policy: ListedPolicy
}

/** The policies whose bans the Worker does not list. */
const unlisted = new Set<string>()

/** Reads and shows the first page of each policy with bans: one call for each. */
export async function showBans(policies: ListedPolicy[]) {
  const pages = await Promise.all(
    policies
      .filter(({ name, bans }) => bans && !unlisted.has(name))
      .map(async (policy) => {
        const { bans, total } = await call<Partial<BanPage>>(
          `policies/${encodeURIComponent(policy.name)}/bans`,
        )
        if (!bans) unlisted.add(policy.name)
        return bans ? [{ rows: bans.map((ban) => ({ ...ban, policy })), total: total! }] : []
      }),
  )
  const lists = pages.flat()
  const rows = lists.flatMap(({ rows }) => rows)
  const total = lists.reduce((sum, { total }) => sum + total, 0)
  byId('bans-list').hidden = lists.length === 0
  byId('bans-none').hidden = total > 0
  byId('bans-more').hidden = total === rows.length
  setText(byId('bans-more'), `${numberText(rows.length)} of ${numberText(total)} bans.`)
  showRows(byId('bans'), rows, {
    key: ({ policy, subject }) => JSON.stringify([policy.name, subject]),
    cells: ({ policy, subject, bannedForMs }) => [subject, policy.name, durationText(bannedForMs)],
    actions,
  })
}

function actions({ policy, subject }: Row): Node[] {
  const target = targetOf(subject, policy.key)
  if (!target) return [element('small', 'Unban it by the values of its key.')]
  return [
    button('Peek', subject, () => operate('peek', policy.name, target)),
    button('Unban', subject, () => operate('unban', policy.name, target)),
  ]
}
