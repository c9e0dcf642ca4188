import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { describeNamespace } from '../../dev/check/namespace.ts'

const policies = [{ name: 'per-ip', limit: 100, window: '1m' }]

describe('npm run check', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sluice-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  const told = async (namespace: string | undefined, toml: string) => {
    const file = join(folder, 'wrangler.toml')
    await writeFile(file, toml)
    return describeNamespace({ policies, namespace }, file)
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

  test('names the namespace', async () => {
    expect(await told('shop', environments)).toBe('shop')
  })

  test('says that there is no namespace', async () => {
    expect(await told(undefined, 'name = "a"')).toBe('none')
    expect(await describeNamespace({ policies }, join(folder, 'missing.toml'))).toBe('none')
  })

  test('says which environments of wrangler.toml count together without a namespace', async () => {
    expect(await told(undefined, environments)).toBe(
      'none; on the same database the environments of wrangler.toml (staging, production) count together: docs/reference/configuration.md#namespaces',
    )
  })
})
