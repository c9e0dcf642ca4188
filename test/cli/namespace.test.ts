import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { describeNamespace } from '../../cli/check/namespace.ts'

describe('the namespace in npm run check', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  const namespaceOf = async (namespace: string | undefined, toml: string) => {
    const file = join(folder, 'wrangler.toml')
    await writeFile(file, toml)
    return describeNamespace({ namespace }, file)
  }
  const environments = `name = "a"
[env.staging]
name = "a-staging"
[[env.staging.ratelimits]]
name = "SHIELD"
[env.production.vars]
A = "1"
# [env.old]
`

  test('The check prints the namespace of the configuration.', async () => {
    expect(await namespaceOf('shop', environments)).toBe('shop')
  })

  test('The check prints "none" for a configuration without a namespace.', async () => {
    expect(await namespaceOf(undefined, 'name = "a"')).toBe('none')
    expect(await describeNamespace({}, join(folder, 'missing.toml'))).toBe('none')
  })

  test('Without a namespace the check names the environments of wrangler.toml that may share counters.', async () => {
    expect(await namespaceOf(undefined, environments)).toBe(
      'none; the environments of wrangler.toml (staging, production) share counters if they use the same database: npx sluice docs configuration#namespaces',
    )
  })
})
