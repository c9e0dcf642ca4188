import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { drawPicture } from '../../../tools/bench/picture.ts'
import { type BenchServer, openServer } from '../../../tools/bench/server.ts'
import { replay } from './replay.ts'
import { stories } from './stories.ts'

const docs = (name: string) =>
  readFile(new URL(`../../../docs/explanation/${name}`, import.meta.url), 'utf8')

let server: BenchServer
beforeAll(async () => {
  server = await openServer()
})
afterAll(() => server?.stop())

test.each(Object.entries(stories))(
  'The table in docs/explanation/algorithms.md about %s matches the script.',
  async (_, story) => {
    expect(await docs('algorithms.md')).toContain(await replay(server, story))
  },
)

test('docs/explanation/algorithms.svg matches the script.', async () => {
  expect(await drawPicture(server)).toBe(await docs('algorithms.svg'))
})

test('The text in docs/explanation/algorithms.md has the numbers of the picture.', async () => {
  const most = [...(await docs('algorithms.svg')).matchAll(/class="most"[^>]*>(\d+)</g)]
  const [fixed, sliding, log, bucket, gcra] = most.map(([, number]) => number)
  expect(await docs('algorithms.md')).toContain(
    `${fixed} by fixed windows, ${sliding} by sliding windows, ${log} by the log, ${bucket} by the token bucket, ${gcra} by GCRA`,
  )
})
