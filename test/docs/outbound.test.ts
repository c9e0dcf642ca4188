/** The guides of outbound calls: their options are valid, and do what the pages say. */
import { expect, test } from 'vitest'
import { bodies } from '../../src/features/bodies/index.ts'
import { type Outbound, outbound } from '../../src/outbound/index.ts'
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
  // 13 calls at 1,500 tokens fit into the burst of 20,000.
  side.answers = Array.from({ length: 13 }, () => Response.json({ usage: { total_tokens: 8000 } }))
  const responses = await Promise.all(side.answers.map(ask))
  expect(await responses[0]!.json()).toEqual({ usage: { total_tokens: 8000 } })
  await Promise.all(responses.slice(1).map((response) => response.text()))
  // They have used 104,000. What is above the burst flows back in 25 s.
  await expect.poll(async () => (await call.status()).nextTurnMs).toBeGreaterThan(1_000)
})

test("The guide for GitHub charges what writes more, and sends a call again after GitHub's limit.", async () => {
  const { side, call } = callOf('keep-to-githubs-limits')
  side.answers.push(async () => {
    const reset = `${Date.now() / 1000 + 1}`
    const headers = { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': reset }
    return new Response('limited', { status: 403, headers })
  })
  expect((await call('https://api.github.com/user')).status).toBe(200)
  expect(side.received).toHaveLength(2)
  const write = () =>
    call('https://api.github.com/repos/a/b/issues', { method: 'POST', body: '{}' })
  // After a burst of 5, one write each 750 ms. On a busy machine a part of them has passed before the status.
  const nextWrite = async () => {
    await (await write()).text()
    return (await call.status('https://api.github.com/', { method: 'POST', body: '{}' })).nextTurnMs
  }
  await expect.poll(nextWrite).toBeGreaterThan(300)
  expect((await call.status()).nextTurnMs).toBeLessThan(300)
})
