/** A service that charges the cost of its answers. docs/reference/decision-api.md shows this file, and test/docs/decision-api.test.ts runs it. */
import { createClient } from 'sluice/client'

const api = createClient({ url: process.env.SLUICE_URL!, token: process.env.SLUICE_API_TOKEN! })

/** Charges the maximum cost of an answer, then refunds the unused part. */
export async function complete(user: string, most: number, answer: () => Promise<number>) {
  const ask = { policy: 'tokens', key: user, cost: most }
  const decision = await api.decide(ask)
  if (!decision.allowed) return decision
  const used = await answer()
  await api.refund(ask, decision, { cost: most - used })
  return decision
}
