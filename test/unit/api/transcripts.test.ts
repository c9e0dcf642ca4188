import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import type { ProxyName } from '../../../dev/proxies/binaries.ts'
import { record } from '../../../dev/proxies/transcript.ts'
import { findInstalledProxies } from '../../support/proxy-binaries.ts'

const file = new URL('../../../docs/reference/decision-api.md', import.meta.url)
const here = await findInstalledProxies()

describe.each<ProxyName>(['nginx', 'caddy'])('docs/reference/decision-api.md on %s', (name) => {
  const block = async () => {
    const marked = new RegExp(
      `<!-- transcripts:${name} -->\n([\\s\\S]*?)<!-- /transcripts:${name} -->`,
    )
    return marked.exec(await readFile(file, 'utf8'))?.[1]
  }

  test('shows an allowed request, a refused one, a denied one, and both ways with Sluice away', async () => {
    const text = await block()
    expect(text).toMatch(/^```\n[\s\S]*\n```\n$/)
    const answers = text!.match(/^HTTP\/1\.1 \d+/gm)
    expect(answers).toEqual([200, 200, 429, 403, 200, 503].map((status) => `HTTP/1.1 ${status}`))
    expect(text).toMatch(/^Retry-After: 3600$/m)
    expect(text).toMatch(/^ratelimit: "per-ip";r=0;t=3600$/im)
  })

  const binary = here[name]
  test.skipIf(!binary)('is what npm run transcripts finds today', async () => {
    expect(await block()).toBe(`\`\`\`\n${(await record(name, binary!)).trimEnd()}\n\`\`\`\n`)
  })
})
