/** A service that pays for what it uses: docs/decision-api.md has this, and test/docs/decision-api.test.ts runs it. */
import { createClient } from 'sluice/client'

const gate = createClient({ url: process.env.SLUICE_URL!, token: process.env.SLUICE_GATE_TOKEN! })

/** Takes the most that an answer may cost, and gives back what it did not. */
export async function complete(user: string, most: number, answer: () => Promise<number>) {
  const ask = { policy: 'tokens', key: user, cost: most }
  const decision = await gate.decide(ask)
  if (!decision.allowed) return decision
  const used = await answer()
  await gate.giveBack(ask, decision, { cost: most - used })
  return decision
}
