/** Turns in workerd, where a request must not use the I/O of another one. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Miniflare } from 'miniflare'
import { expect, onTestFinished, test } from 'vitest'
import { compatibilityDate } from '../../tools/build.ts'
import { bundled } from '../support/bundled.ts'
import { limitedOrigin } from '../support/limited-origin.ts'

test('The requests of one isolate and its Durable Object take turns, and wait for slots of each other.', async () => {
  const origin = await limitedOrigin({ requests: 1_000 })
  onTestFinished(() => origin.close())
  const folder = await mkdtemp(join(tmpdir(), 'sluice-outbound-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const worker = {
    name: 'outbound',
    compatibilityDate,
    exports: { SluiceSubject: { type: 'durable-object', storage: 'sqlite' } },
    env: {
      SLUICE_SUBJECT: { type: 'durable-object', worker: 'outbound', exportName: 'SluiceSubject' },
      SLUICE_SECRET: { type: 'text', value: 'a secret for tests' },
      ORIGIN: { type: 'text', value: origin.url },
    },
    manifest: await bundled('test/support/outbound-worker.ts'),
  }
  const miniflare = new Miniflare({
    host: '127.0.0.1',
    port: 0,
    resourcePersistencePath: folder,
    workers: [{ config: worker }],
  } as unknown as ConstructorParameters<typeof Miniflare>[0])
  onTestFinished(() => miniflare.dispose())

  const begun = Date.now()
  const send = async () => {
    const response = await miniflare.dispatchFetch('http://worker/')
    return [response.status, Object.keys((await response.json()) as object)]
  }
  const answers = await Promise.all(Array.from({ length: 12 }, send))
  expect(answers).toEqual(answers.map(() => [200, ['usage']]))
  // The origin takes 100 ms for each, two at a time.
  expect(Date.now() - begun).toBeGreaterThanOrEqual(600)
  const times = origin.arrivals.map(({ at }) => at)
  times.slice(2).forEach((at, index) => {
    expect(at - times[index]!).toBeGreaterThanOrEqual(90)
  })
  await expect
    .poll(async () => (await miniflare.dispatchFetch('http://worker/status')).json())
    .toMatchObject({ waiting: 0, slotsAhead: 0, coolingMs: 0 })
})
