/** `npm run test:laws -- --runs N`: tests each law of the algorithms with N random schedules. `npm test` uses 64; this defaults to 10,000. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { runs: { type: 'string', default: '10000' } } })
if (!/^[1-9]\d*$/.test(values.runs)) {
  console.error(`--runs: expected a whole number of at least 1, got ${JSON.stringify(values.runs)}`)
  process.exit(1)
}
const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url))
const { status } = spawnSync(
  process.execPath,
  [vitest, 'run', 'test/script', '--testTimeout', '0'],
  {
    stdio: 'inherit',
    env: { ...process.env, LAW_RUNS: values.runs },
  },
)
process.exit(status ?? 1)
