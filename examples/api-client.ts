/** A service that pays for what it uses: docs/reference/decision-api.md has this, and test/docs/decision-api.test.ts runs it. */
import { createClient } from 'sluice/client'

const api = createClient({ url: process.env.SLUICE_URL!, token: process.env.SLUICE_API_TOKEN! })

/** Takes the most that an answer may cost, and refunds what it did not. */
export async function complete(user: string, most: number, answer: () => Promise<number>) {
  const ask = { policy: 'tokens', key: user, cost: most }
  const decision = await api.decide(ask)
  if (!decision.allowed) return decision
  const used = await answer()
  await api.refund(ask, decision, { cost: most - used })
  return decision
}
