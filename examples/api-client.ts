/** A service that charges the cost of its answers. docs/reference/decision-api.md shows this file, and test/docs/decision-api.test.ts runs it. */
import { createClient } from 'sluice/client'

const quota = createClient({ url: process.env.SLUICE_URL!, token: process.env.SLUICE_API_TOKEN! })

/** Charges the maximum cost of an answer, then settles with what it has used. */
export async function complete(user: string, most: number, answer: () => Promise<number>) {
  const charge = await quota.limit('tokens', user, { cost: most })
  if (charge.allowed) await charge.settle({ cost: await answer() })
  return charge
}
