/** The clients that are banned now, and those with a limit of an operator. */
import type { BanPage, BanReport } from '../../../src/features/bans/endpoint.ts'
import type { OverrideList } from '../../../src/features/overrides/endpoints.ts'
import { call } from './call.ts'
import { openClient } from './client.ts'
import { button, byId, element, setText, showRows } from './dom.ts'
import { type ListedPolicy, targetOf } from './policies.ts'
import { ageText, numberText } from './text.ts'
import { isShown } from './view.ts'

/** A list of overrides may be long. The Worker cuts that of bans itself. */
const MOST = 100

type OverrideReport = OverrideList['overrides'][number]
type Row<Report> = Report & { policy: string; listed: ListedPolicy }
let bans: { rows: Row<BanReport>[]; total: number } | undefined
let overrides: { rows: Row<OverrideReport>[]; total: number } | undefined
/** The policies whose bans the Worker does not list. */
const unlisted = new Set<string>()

const pathOf = (policy: string, list: string) => `policies/${encodeURIComponent(policy)}/${list}`

/** Reads both lists: one call for each policy. */
export async function readLists(policies: ListedPolicy[]) {
  const [pages, lists] = await Promise.all([
    Promise.all(
      policies
        .filter(({ name, bans }) => bans && !unlisted.has(name))
        .map(async (listed) => {
          const { bans, total = 0 } = await call<Partial<BanPage>>(pathOf(listed.name, 'bans'))
          if (!bans) unlisted.add(listed.name)
          return bans
            ? [{ rows: bans.map((ban) => ({ ...ban, policy: listed.name, listed })), total }]
            : []
        }),
    ),
    Promise.all(
      policies
        .filter(({ overrides }) => overrides)
        .map(async (listed) => {
          const { overrides } = await call<OverrideList>(pathOf(listed.name, 'keys'))
          return overrides.map((one) => ({ ...one, policy: listed.name, listed }))
        }),
    ),
  ])
  const found = pages.flat()
  bans = found.length > 0 ? totalOf(found) : undefined
  overrides = lists.length > 0 ? { rows: lists.flat(), total: lists.flat().length } : undefined
  showLists()
}

const totalOf = (pages: { rows: Row<BanReport>[]; total: number }[]) => ({
  rows: pages.flatMap(({ rows }) => rows),
  total: pages.reduce((sum, { total }) => sum + total, 0),
})

export function showLists() {
  show('bans', bans, ({ subject, policy, bannedForMs }) => [subject, policy, ageText(bannedForMs)])
  show('overrides', overrides, ({ subject, policy, limit, overriddenForMs }) => [
    subject,
    policy,
    numberText(limit),
    ageText(overriddenForMs),
  ])
}

function show<Report extends { subject: string }>(
  name: 'bans' | 'overrides',
  list: { rows: Row<Report>[]; total: number } | undefined,
  cells: (row: Row<Report>) => string[],
) {
  byId(`${name}-list`).hidden = !list
  if (!list) return
  const rows = list.rows.filter(isShown).slice(0, MOST)
  byId(`${name}-none`).hidden = list.total > 0
  const more = byId(`${name}-more`)
  more.hidden = rows.length === list.total
  setText(
    more,
    `${numberText(rows.length)} of ${numberText(list.total)}. Find another client below.`,
  )
  showRows(byId(name), rows, {
    key: ({ policy, subject }) => JSON.stringify([policy, subject]),
    cells,
    actions: ({ policy, subject, listed }) => {
      const target = targetOf(subject, listed.key)
      if (!target) return [element('small', 'Find it below by the values of its key.')]
      const undoing = name === 'bans' ? 'Unban' : 'Remove limit'
      return [
        button('Details', subject, () => openClient(policy, target, subject)),
        button(undoing, subject, () => openClient(policy, target, subject, undoing)),
      ]
    },
  })
}
