/**
 * Every example of docs/reference/configuration.md and README.md, through the front door: workerd, the bridge, a real Redis.
 * An example is a block ```ts <name>, and has a scenario of that name in test/support/configuration-examples.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { build } from '../../dev/build.ts'
import { startStack } from '../../dev/stack.ts'
import { defineConfig } from '../../src/config/parse.ts'
import type { ConfigOptions } from '../../src/index.ts'
import {
  env,
  running,
  type Scenarios,
  scenarioOf,
} from '../support/configuration-examples/client.ts'
import { costs } from '../support/configuration-examples/costs.ts'
import { credentials } from '../support/configuration-examples/credentials.ts'
import { headers } from '../support/configuration-examples/headers.ts'
import { operation } from '../support/configuration-examples/operation.ts'
import { quotas } from '../support/configuration-examples/quotas.ts'
import { requests } from '../support/configuration-examples/requests.ts'
import { startIssuer } from '../support/issuer.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The examples of a file, by name. */
async function examplesOf(file: string): Promise<[name: string, code: string][]> {
  const content = await readFile(join(root, file), 'utf8')
  return [...content.matchAll(/^```ts *(\S*)\n(.*?)^```$/gms)]
    .map(([, name, code]): [string, string] => [name!, code!])
    .filter(([, code]) => /\b(defineConfig|rateLimiter)[<(]/.test(code))
}

const examples = [
  ...(await examplesOf('docs/reference/configuration.md')),
  ...(await examplesOf('README.md')).filter(([, code]) => code.includes('defineConfig(')),
]
const isConfig = ([, code]: [string, string]) => code.includes('defineConfig(')
const exporting = (code: string) =>
  code.replace(/^(export default )?(?=defineConfig\()/m, 'export default ')

/** What an example hands to `defineConfig`, which checks it. */
const configOf = (code: string): ConfigOptions =>
  new Function('defineConfig', exporting(code).replace('export default', 'return'))(defineConfig)

let outdir: string
beforeAll(async () => {
  outdir = await mkdtemp(join(tmpdir(), 'sluice-'))
  await build(outdir, 'test/support/examples-worker.ts')
  running.issuer = await startIssuer()
  const configs = examples.filter(isConfig).map(([name, code]) => [name, configOf(code)])
  const EXAMPLES = JSON.stringify(Object.fromEntries(configs)).replaceAll(
    'https://login.example.com/.well-known/jwks.json',
    running.issuer.url,
  )
  const ratelimits = { SHIELD: { limit: 200, period: 10 as const } }
  running.stack = await startStack({ worker: outdir, env: { ...env, EXAMPLES }, ratelimits })
})
afterAll(async () => {
  await Promise.all([running.stack?.stop(), running.issuer?.close()])
  await rm(outdir, { recursive: true })
})

const scenarios: Scenarios = {
  ...quotas,
  ...requests,
  ...costs,
  ...headers,
  ...credentials,
  ...operation,
}

test('Each example has a scenario, and each scenario has an example.', () => {
  expect(examples.map(([name]) => name).sort()).toEqual(Object.keys(scenarios).sort())
})

test('Each example passes the type check against the published types.', async () => {
  const folder = join(root, 'dist/examples')
  await mkdir(folder, { recursive: true })
  const head = "import { defineConfig } from '../../src/index.ts'\n"
  for (const [name, code] of examples.filter(isConfig)) {
    await writeFile(join(folder, `${name}.ts`), head + exporting(code))
  }
  const tsconfig = { extends: '../../tsconfig.json', include: ['*.ts', '../../src/lua.d.ts'] }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig))
  const tsc = join(root, 'node_modules/.bin/tsc')
  const said = await promisify(execFile)(tsc, ['-p', folder]).catch(({ stdout }) => ({ stdout }))
  expect(said.stdout).toBe('')
})

test('The example that is code is the file in examples/.', async () => {
  const file = await readFile(join(root, 'examples/key-function.ts'), 'utf8')
  const published = file.replace(/^\/\*\*.*\n/, '').replace(/'\.\.\/src\/index\.ts'.*/, "'sluice'")
  expect(examples.find((example) => !isConfig(example))).toEqual(['key-function', published])
})

test.each(Object.entries(scenarios))(
  'The example %s of the docs behaves as its text says.',
  (name, run) => run(scenarioOf(name)),
)
