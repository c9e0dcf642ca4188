/** The guides of outbound calls: their options are valid, and do what the pages say. */
import { expect, test } from 'vitest'
import { bodies } from '../../src/features/bodies/index.ts'
import { type Outbound, outbound } from '../../src/features/outbound/index.ts'
import { otherSide, useOutbound } from '../support/outbound.ts'
import { blocksOf, pageAt } from '../support/pages.ts'

const stack = useOutbound()

/** The `call` of a guide, in front of another side in this process. */
function callOf(guide: string) {
  const [{ code } = { code: '' }] = blocksOf(pageAt(`docs/guides/${guide}.md`))
  const statements = code
    .split('\n')
    .filter((line) => !/^(import|export) /.test(line))
    .join('\n')
  const side = otherSide()
  const withEnv: typeof outbound = (fetch, options) =>
    outbound(fetch, { ...options, env: stack.env(), deadline: '5s' })
  const make = new Function('outbound', 'bodies', 'fetch', `${statements}\nreturn call`)
  return { side, call: make(withEnv, bodies, side.fetch) as Outbound }
}

test('The guide for LLM providers charges the tokens of each response.', async () => {
  const { side, call } = callOf('keep-to-an-llm-providers-limits')
  const ask = () =>
    call('https://api.openai.com/v1/chat/completions', { method: 'POST', body: '{}' })
  expect((await call.status()).nextTurnMs).toBe(0)
  for (let count = 0; count < 3; count += 1) {
    side.answers.push(Response.json({ usage: { total_tokens: 8000 } }))
    expect(await (await ask()).json()).toEqual({ usage: { total_tokens: 8000 } })
  }
  // 24,000 of a burst of 20,000 are used: 4,000 and the next call's 1,500 flow back in 1.65 s.
  await expect.poll(async () => (await call.status()).nextTurnMs).toBeGreaterThan(1_000)
})

test("The guide for GitHub charges what writes more, and sends a call again after GitHub's limit.", async () => {
  const { side, call } = callOf('keep-to-githubs-limits')
  const limited = { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': `${Date.now() / 1000 + 1}` }
  side.answers.push(new Response('limited', { status: 403, headers: limited }))
  expect((await call('https://api.github.com/user')).status).toBe(200)
  expect(side.received).toHaveLength(2)
  const write = () =>
    call('https://api.github.com/repos/a/b/issues', { method: 'POST', body: '{}' })
  for (let count = 0; count < 5; count += 1) await (await write()).text()
  const status = await call.status('https://api.github.com/', { method: 'POST', body: '{}' })
  expect(status.nextTurnMs).toBeGreaterThan(300) // one write each 750 ms after a burst of 5
  expect((await call.status()).nextTurnMs).toBeLessThan(300)
})
