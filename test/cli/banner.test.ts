import { expect, test } from 'vitest'
import { addresses, tries } from '../../cli/dev/banner.ts'
import { describe } from '../../cli/dev/describe.ts'

const URL_OF_DEV = 'http://127.0.0.1:8787'

test('An address is alone on its line, which a terminal of 80 columns does not wrap.', () => {
  const dashboard = `http://127.0.0.1:40927/#${'x'.repeat(43)}`
  const lines = addresses([
    ['Worker', URL_OF_DEV, 'send requests here; reloads when you edit sluice.config.ts'],
    ['Dashboard', dashboard, 'shows live what the Worker admits and refuses'],
  ]).split('\n')
  expect(lines.map((line) => line.trim())).toEqual([
    'Worker: send requests here; reloads when you edit sluice.config.ts',
    URL_OF_DEV,
    'Dashboard: shows live what the Worker admits and refuses',
    dashboard,
  ])
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80)
})

test('A command that is wider than 80 columns has a line for each of its options.', () => {
  const description = describe({
    origin: 'zone',
    policies: [{ name: 'per-ip', limit: 5, window: '1m' }],
  })
  const text = tries(description, URL_OF_DEV, { api: 'dev-api-token-0000', operate: 'a' })
  expect(text).toContain(`  curl ${URL_OF_DEV}/_sluice/v1/decide \\
    -H "Authorization: Bearer dev-api-token-0000" \\
    -d '{"policy":"per-ip","key":"203.0.113.7"}'
`)
  const commands = text.split('\n').filter((line) => !line.startsWith('  # '))
  expect(Math.max(...commands.map((line) => line.length))).toBeLessThanOrEqual(80)
})
