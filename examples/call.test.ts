/** A test of a call, without waiting for a day. docs/guides/test-policies.md shows this file, with the names of your own project. */
import { afterAll, expect, test } from 'vitest'
import { limits } from '../src/limits/limits.ts' // 'sluice/limits' in your own project
import { startSluice } from '../src/testing/start.ts' // 'sluice/testing' in your own project

const sluice = await startSluice()
afterAll(() => sluice.stop())
const quota = limits({ invites: { limit: 2, window: '1d' } }, { env: sluice.env })
const mayInvite = (id: string) => sluice.run(async () => (await quota.limit('invites', id)).allowed)

test('The third invitation has to wait for two days at most.', async () => {
  expect([await mayInvite('ann'), await mayInvite('ann')]).toEqual([true, true])
  expect(await mayInvite('ann')).toBe(false)
  await sluice.advance('2d')
  expect(await mayInvite('ann')).toBe(true)
})
