/** The limits that operators have set for single keys. */
import type { OverrideList } from '../../../src/features/overrides/endpoints.ts'
import { call } from './call.ts'
import { byId, showRows } from './dom.ts'
import type { ListedPolicy } from './quotas.ts'
import { durationText, numberText } from './text.ts'

/** Reads and shows them. Each policy with `overrides` needs one call. */
export async function showOverrides(policies: ListedPolicy[]) {
  const lists = await Promise.all(
    policies
      .filter(({ overrides }) => overrides)
      .map(async ({ name }) => {
        const path = `policies/${encodeURIComponent(name)}/keys`
        const { overrides } = await call<OverrideList>(path)
        return overrides.map((one) => ({ ...one, policy: name }))
      }),
  )
  byId('overrides-list').hidden = lists.length === 0
  showRows(byId('overrides'), lists.flat(), {
    key: ({ policy, subject }) => JSON.stringify([policy, subject]),
    cells: ({ policy, subject, limit, overriddenForMs }) => [
      subject,
      policy,
      numberText(limit),
      durationText(overriddenForMs),
    ],
  })
}
