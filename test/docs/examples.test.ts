/**
 * Runs every example configuration of the documentation in workerd, with the bridge and a real Redis. An example is a code block
 * ```ts <name>. It has a scenario of that name in test/support/configuration-examples, or curl commands below it on the page: blocks
 * ```console, whose output is compared with the one that the page shows.
 */
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stack } from '../../tools/stack.ts'
import { bundled } from '../support/bundled.ts'
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
import { type CurlAnswer, parseCurl, sendCurl } from '../support/curl.ts'
import { importsFor } from '../support/entries.ts'
import { configOf, examples, exporting } from '../support/examples.ts'
import { startIssuer } from '../support/issuer.ts'
import { blocksOf, pages, read, root } from '../support/pages.ts'
import { expectAnswer, expectText } from '../support/shown-output.ts'
import { startStack } from '../support/stack.ts'
import { transcripts } from '../support/transcripts.ts'
import { nextWindow } from '../support/windows.ts'

const configs = examples.filter(({ page }) => page !== 'docs/reference/decision-api.md')

const parsed = Object.fromEntries(configs.map(({ name, code }) => [name, configOf(code)]))

/** Runs the configuration of `npm start`. */
let shipped: Stack
beforeAll(async () => {
  const worker = await bundled('test/docs/examples-worker.ts')
  running.issuer = await startIssuer()
  const EXAMPLES = JSON.stringify(parsed).replaceAll(
    'https://login.example.com/.well-known/jwks.json',
    running.issuer.url,
  )
  const ratelimits = { SHIELD: { limit: 200, period: 10 as const } }
  const tokens = {
    SLUICE_API_TOKEN: 'dev-api-token-0000',
    SLUICE_OPERATE_TOKEN: 'dev-operate-token-0000',
  }
  const variables = { ...env, ...tokens, EXAMPLES }
  running.stack = await startStack({ worker, env: variables, ratelimits })
  shipped = await startStack({ env: tokens })
})
afterAll(() => Promise.all([running.stack?.stop(), shipped?.stop(), running.issuer?.close()]))

const parts = [quotas, requests, costs, headers, credentials, operation]
const scenarios: Scenarios = Object.assign({}, ...parts)

test('No two examples have the same name.', () => {
  const names = examples.map(({ name }) => name)
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})

test('Each example has a scenario or a transcript, and each scenario has an example.', () => {
  const names = configs.map(({ name }) => name)
  // test/cli/check.test.ts runs the commands below the example.
  const tested = new Set([
    'expectations',
    ...Object.keys(scenarios),
    ...transcripts.map(({ example }) => example),
  ])
  expect(names.filter((name) => !tested.has(name))).toEqual([])
  expect(
    Object.keys(scenarios).filter((name) => ![...names, 'key-function'].includes(name)),
  ).toEqual([])
})

test('Each example passes the type check against the published types.', async () => {
  const folder = join(root, 'dist/examples')
  await mkdir(folder, { recursive: true })
  for (const { name, code } of examples) {
    await writeFile(join(folder, `${name}.ts`), importsFor(code) + exporting(code))
  }
  const tsconfig = { extends: '../../tsconfig.json', include: ['*.ts'], exclude: [] }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig))
  const tsc = join(root, 'node_modules/.bin/tsc')
  const { stdout } = await promisify(execFile)(tsc, ['-p', folder, '--singleThreaded']).catch(
    (error) => error,
  )
  expect(stdout).toBe('')
})

test.each([
  ['testing', 'testing.test.ts'],
  ['test-call', 'call.test.ts'],
  ['verify-webhook', 'verify-webhook.ts'],
  ['client', 'api-client.ts'],
])('The example %s equals examples/%s, with the names of another project.', (name, file) => {
  const published = read(`examples/${file}`)
    .replace(/^\/\*\*.*\n/, '')
    .replace(/'\.\.\/src\/index\.ts'.*/, "'sluice'")
    .replace(/'\.\.\/src\/testing\/start\.ts'.*/, "'sluice/testing'")
    .replace(/'\.\.\/src\/limits\/limits\.ts'.*/, "'sluice/limits'")
    .replace('examples/middleware.ts', 'src/index.ts')
  const shown = pages.flatMap(blocksOf).filter((block) => block.name === name)
  expect(shown.map(({ code }) => code)).toEqual([published])
})

let runs = 0
test.each(transcripts.map((transcript) => [transcript.title, transcript] as const))(
  'The commands at %s print what the page shows.',
  async (title, { example, steps }) => {
    // Each run of a block counts for itself: an address of its own, and keys of its own.
    const run = ++runs
    const own = {
      'CF-Connecting-IP': `198.51.100.${run}`,
      ...(example && { 'x-example': `${example}#${title}#${run}` }),
    }
    // Requests to a window of a second must not spread over two windows. Sent one after the other they do, on a busy machine.
    const isBrief = parsed[example]?.policies?.some((policy) => policy.window === '1s')
    if (isBrief) await nextWindow(1000)
    const { directUrl } = (example ? running.stack : shipped).worker
    for (const { command, output } of steps) {
      const curl = parseCurl(command)
      let printed = ''
      const send = (url: string) => sendCurl(curl, url, directUrl, own)
      const sent: (CurlAnswer | Promise<CurlAnswer>)[] = []
      for (const url of curl.urls) sent.push(isBrief ? send(url) : await send(url))
      const answers = await Promise.all(sent)
      if (isBrief) answers.sort((one, other) => one.status - other.status)
      for (const answer of answers) {
        const formatted = curl.format
          .replaceAll('%{http_code}', String(answer.status))
          .replaceAll('\\n', '\n')
        if (!curl.include) {
          printed += (curl.discard ? '' : answer.body) + formatted
          continue
        }
        expectAnswer(answer, output)
      }
      if (!curl.include) expectText(printed, output)
    }
  },
)

test.each(Object.entries(scenarios))(
  'The example %s behaves as the documentation says.',
  (name, run) => run(scenarioOf(name)),
)
