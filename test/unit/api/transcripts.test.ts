import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import type { ProxyName } from '../../../tools/proxies/binaries.ts'
import { record } from '../../../tools/proxies/transcript.ts'
import { findInstalledProxies } from '../../support/proxy-binaries.ts'

const file = new URL('../../../docs/contribute/proxy-transcripts.md', import.meta.url)
const installed = await findInstalledProxies()

describe.each<ProxyName>(['nginx', 'caddy'])('the transcript of %s in the docs', (name) => {
  const block = async () => {
    const marked = new RegExp(
      `<!-- transcripts:${name} -->\n([\\s\\S]*?)<!-- /transcripts:${name} -->`,
    )
    return marked.exec(await readFile(file, 'utf8'))?.[1]
  }

  test('The transcript shows an allowed, a refused and a denied request, and both settings for an unavailable Sluice.', async () => {
    const text = await block()
    expect(text).toMatch(/^```\n[\s\S]*\n```\n$/)
    const answers = text!.match(/^HTTP\/1\.1 \d+/gm)
    expect(answers).toEqual([200, 200, 429, 403, 200, 503].map((status) => `HTTP/1.1 ${status}`))
    expect(text).toMatch(/^Retry-After: 3600$/m)
    expect(text).toMatch(/^ratelimit: "per-ip";r=0;t=3600$/im)
  })

  const binary = installed[name]
  test.skipIf(!binary)('The transcript equals the output of npm run transcripts.', async () => {
    expect(await block()).toBe(`\`\`\`\n${(await record(name, binary!)).trimEnd()}\n\`\`\`\n`)
  })
})
